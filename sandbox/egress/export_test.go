package egress

// SetMaxOpen changes how many connections a proxy carries.
func (p *Proxy) SetMaxOpen(n int64) { p.maxOpen = n }
