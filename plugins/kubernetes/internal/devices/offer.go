package devices

import (
	"fmt"
	"slices"
	"strings"
)

// Device is what one container gets: a function, or a queue, or a share of one.
type Device struct {
	// ID is unique among those of its resource.
	ID string
	// Unit is the hardware behind it, of which others may be a part, too.
	Unit string
	// Address is its own, in PCI.
	Address string
	NUMA    *int64
	// Files that a container needs to use it.
	Files []string
	Fault
	// Firmware of the hardware, if the driver tells its version.
	Firmware string
	// Entries of a work queue, which all who have it share.
	Entries *uint32
}

// Fault is why a device is not offered now.
type Fault struct {
	// Code is a word for programs, and Sick a sentence; both are empty if the device is well.
	Code, Sick string
}

// Options of what is offered.
type Options struct {
	// Domain of resource names; empty for those of Intel's plugins, so that specs written for them work.
	Domain string
	// Share is how many containers may have one shared queue.
	Share int
	// CDI is the folder of specifications for the runtime; containers get files without it if empty.
	CDI string
}

// Offers gives the devices of each resource, in a constant order.
func Offers(facts []Facts, options Options) map[string][]Device {
	offers := map[string][]Device{}
	add := func(kind, name string, device Device) {
		resource := options.resource(kind, name)
		offers[resource] = append(offers[resource], device)
	}
	physical := map[string]Facts{}
	for _, one := range facts {
		physical[one.Address] = one
	}
	for _, one := range facts {
		switch one.Kind {
		case "qat":
			qat(one, physical, groups(facts), add)
		case "iaa", "dsa":
			queues(one, max(options.Share, 1), add)
		case "dlb":
			dlb(one, add)
		}
	}
	for _, devices := range offers {
		slices.SortFunc(devices, func(a, b Device) int { return strings.Compare(a.ID, b.ID) })
	}
	return offers
}

func (o Options) resource(kind, name string) string {
	if o.Domain == "" {
		return kind + ".intel.com/" + name
	}
	return o.Domain + "/" + kind + "-" + name
}

// groups are the functions of each VFIO file.
func groups(facts []Facts) map[string][]string {
	all := map[string][]string{}
	for _, one := range facts {
		if one.File != nil && is(one.Driver, "vfio-pci") {
			all[one.File.Path] = append(all[one.File.Path], one.Address)
		}
	}
	return all
}

// qat offers virtual functions that user space can drive. Those of a kernel driver are the kernel's.
func qat(one Facts, physical map[string]Facts, groups map[string][]string, add func(string, string, Device)) {
	if !one.Virtual || !is(one.Driver, "vfio-pci") || one.QAT == nil || one.File == nil {
		return
	}
	parent, seen := physical[value(one.QAT.Physical)]
	device := Device{ID: one.Address, Unit: value(one.QAT.Physical), Address: one.Address, NUMA: one.node(), Files: []string{"/dev/vfio/vfio", one.File.Path}}
	if seen && parent.QAT != nil {
		device.Firmware = value(parent.QAT.Firmware)
	}
	others := groups[one.File.Path]
	switch {
	case one.File.Access == "missing":
		device.Fault = Fault{"file-missing", one.File.Path + " is not there"}
	case len(others) > 1:
		// The kernel gives a group as a whole, to one.
		device.Fault = Fault{"iommu-group-shared", "it shares an IOMMU group with " + strings.Join(slices.DeleteFunc(slices.Clone(others), func(a string) bool { return a == one.Address }), ", ") +
			", so one container could reach what another has: enable ACS, or leave one function to each group"}
	case strings.HasPrefix(one.File.Path, "/dev/vfio/noiommu-"):
		device.Fault = Fault{"no-iommu", "there is no IOMMU, so a container could reach all memory: boot with intel_iommu=on"}
	case seen:
		device.Fault = parent.fault()
	}
	services := "generic"
	if seen && parent.QAT != nil && value(parent.QAT.Services) != "" {
		services = servicesName(*parent.QAT.Services)
	} else if value(one.QAT.Services) != "" {
		services = servicesName(*one.QAT.Services)
	} else if one.Model != "c6xx" {
		// A device of the fourth generation says what it is set up for. If this machine does not see its physical function, as
		// in a virtual machine, nobody does.
		services = "unknown"
	}
	add("qat", services, device)
}

// fault is why a physical function, and all of it, cannot be used.
func (f Facts) fault() Fault {
	switch {
	case f.Driver == nil:
		return Fault{"no-driver", "its physical function " + f.Address + " has no driver"}
	case is(f.State, "down"):
		return Fault{"down", "the device " + f.Address + " is down"}
	case f.QAT != nil && is(f.QAT.Heartbeat, "lost"):
		return Fault{"heartbeat-lost", "the firmware of " + f.Address + " does not answer"}
	}
	return Fault{}
}

// servicesName is the driver's word as a resource name: "sym;asym" is "cy", as Intel's plugin calls it.
func servicesName(services string) string {
	words := strings.FieldsFunc(services, func(r rune) bool { return r == ';' || r == ',' || r == ' ' })
	slices.Sort(words)
	name := strings.Join(words, "-")
	if name == "asym-sym" {
		return "cy"
	}
	return name
}

// queues offers those that are for user space. A shared one may be had by several containers.
func queues(one Facts, share int, add func(string, string, Device)) {
	if one.Unit == nil {
		return
	}
	for _, queue := range one.Unit.Queues {
		mode := value(queue.Mode)
		if queue.Type != "user" || mode != "shared" && mode != "dedicated" {
			continue
		}
		count := 1
		if mode == "shared" {
			count = share
		}
		for i := range count {
			add(one.Kind, "wq-user-"+mode, Device{
				ID: fmt.Sprintf("%s-%s-%d", one.Unit.Name, queue.Name, i), Unit: one.Unit.Name, Address: one.Address, NUMA: one.node(),
				Files: []string{queue.File.Path}, Fault: one.queueFault(queue, mode), Entries: queue.Size,
			})
		}
	}
}

func (f Facts) queueFault(queue Queue, mode string) Fault {
	served := len(f.Unit.Groups) == 0 || queue.Group == nil || slices.ContainsFunc(f.Unit.Groups, func(g Group) bool { return g.Number == *queue.Group && g.Engines > 0 })
	switch {
	case f.Driver == nil || !is(f.Unit.State, "enabled"):
		return Fault{"disabled", "the device " + f.Unit.Name + " is not enabled"}
	case !queue.Enabled:
		return Fault{"queue-disabled", "the queue " + queue.Name + " is not enabled"}
	case queue.File.Access == "missing":
		return Fault{"file-missing", queue.File.Path + " is not there"}
	case !served:
		return Fault{"no-engine", "no engine works through the queue " + queue.Name}
	case mode == "shared" && f.Unit.PASID != nil && !*f.Unit.PASID:
		return Fault{"no-pasid", f.Unit.Name + " does not know addresses of processes (PASID): boot with intel_iommu=on,sm_on"}
	}
	return Fault{}
}

func dlb(one Facts, add func(string, string, Device)) {
	if one.File == nil || one.Driver == nil {
		return
	}
	name := "pf"
	if one.Virtual {
		name = "vf"
	}
	device := Device{ID: one.Address, Unit: one.Address, Address: one.Address, NUMA: one.node(), Files: []string{one.File.Path}}
	if one.File.Access == "missing" {
		device.Fault = Fault{"file-missing", one.File.Path + " is not there"}
	}
	if is(one.Driver, "vfio-pci") {
		device.Files = []string{"/dev/vfio/vfio", one.File.Path}
	}
	add("dlb", name, device)
}

// node of memory, or nothing: the kernel says -1 if it does not know.
func (f Facts) node() *int64 {
	if f.NUMA == nil || *f.NUMA < 0 {
		return nil
	}
	return f.NUMA
}

func is(text *string, value string) bool { return text != nil && *text == value }

func value(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
