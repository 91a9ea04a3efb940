package docker

// NameToolboxVolumes lets a test have a toolbox volume of its own.
func (r *Runtime) NameToolboxVolumes(prefix string) { r.volumes = prefix }
