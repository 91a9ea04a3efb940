//go:build linux && !amd64

package main

func archCalls(uintptr) []call { return nil }
