package devices

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// Manager looks at the node again and again, and has a plugin for each resource.
type Manager struct {
	// Facts asks for the devices of this node.
	Facts   func(context.Context) ([]Facts, error)
	Options Options
	// Folder of the kubelet's sockets.
	Folder string
	// Every is how often the devices are looked at. A device that dies is offered for no longer than that.
	Every time.Duration

	plugins map[string]*plugin
	// kubelet is its socket as it was when the plugins were made known.
	kubelet inode
	known   map[string]bool
}

// pulse is how often sockets are looked at where the kernel does not tell of them: a kubelet that restarts removes those of all
// plugins, and fails pods with devices until it hears of them again.
const pulse = time.Second

// DefaultFolder is where every kubelet has its sockets, whatever its own folder is.
const DefaultFolder = api.DevicePluginPath

// Run offers devices until the context ends.
func (m *Manager) Run(ctx context.Context) error {
	m.plugins, m.known = map[string]*plugin{}, map[string]bool{}
	defer func() {
		for _, plugin := range m.plugins {
			plugin.stop()
		}
	}()
	look, sockets := time.NewTicker(m.Every), time.NewTicker(min(pulse, m.Every))
	defer look.Stop()
	defer sockets.Stop()
	told, stop := watch(ctx, m.Folder)
	defer stop()
	// A node that answers slowly keeps nobody from the kubelet.
	answers := make(chan answer, 1)
	m.look(ctx, m.ask(ctx))
	asking := false
	for {
		m.register(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-look.C:
			if !asking {
				asking = true
				go func() { answers <- m.ask(ctx) }()
			}
		case answer := <-answers:
			asking = false
			m.look(ctx, answer)
		case <-sockets.C:
		case <-told:
		}
	}
}

// answer to the question for devices.
type answer struct {
	facts []Facts
	err   error
}

func (m *Manager) ask(ctx context.Context) answer {
	facts, err := m.Facts(ctx)
	return answer{facts, err}
}

// watch tells of what is made and removed in a folder, and of nothing where that cannot be had.
func watch(ctx context.Context, folder string) (<-chan fsnotify.Event, func()) {
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		if err = watcher.Add(folder); err == nil {
			// After an error it goes by the clock.
			go func() {
				for range watcher.Errors {
				}
			}()
			return watcher.Events, func() { _ = watcher.Close() }
		}
		_ = watcher.Close()
	}
	log.FromContext(ctx).Info("a kubelet that restarts is noticed within a second, not at once", "folder", folder, "why", err.Error())
	return nil, func() {}
}

// look offers what the answer says. If it says nothing, what was true remains: a kubelet that is told of no devices would
// end no pod, but start none either.
func (m *Manager) look(ctx context.Context, answer answer) {
	if answer.err != nil {
		if ctx.Err() == nil {
			log.FromContext(ctx).Error(answer.err, "the devices of this node cannot be read: what was offered stays so")
		}
		return
	}
	offers := Offers(answer.facts, m.Options)
	for resource := range offers {
		if m.plugins[resource] == nil {
			m.plugins[resource] = newPlugin(resource, m.Options.CDI)
		}
	}
	for resource, plugin := range m.plugins {
		// The runtime first: what the kubelet knows, it may give away. A device that is gone stays specified as it was.
		if len(offers[resource]) > 0 {
			if err := plugin.specify(offers[resource]); err != nil {
				log.FromContext(ctx).Error(err, "the runtime cannot be told of devices: they are offered once it is", "resource", resource)
				continue
			}
		}
		// One that is gone has none left, and comes back under the same name.
		if plugin.set(offers[resource]) {
			for _, device := range offers[resource] {
				if device.Sick != "" {
					log.FromContext(ctx).Info("a device is not offered", "resource", resource, "device", device.ID, "why", device.Sick)
				}
			}
		}
	}
}

// register makes known what the kubelet does not know, or has forgotten. A socket that somebody else has put in the place of
// ours belongs to another plugin for the same resource, which the kubelet has taken instead of this one. It keeps it: two that
// took it back from each other would never end.
func (m *Manager) register(ctx context.Context) {
	kubelet, there := inodeOf(filepath.Join(m.Folder, "kubelet.sock"))
	if !there {
		return
	}
	restarted := kubelet != m.kubelet
	m.kubelet = kubelet
	for resource, plugin := range m.plugins {
		_, there := inodeOf(filepath.Join(m.Folder, plugin.endpoint))
		if there && m.known[resource] && !restarted {
			continue
		}
		err := plugin.serve(ctx, m.Folder)
		if err != nil {
			log.FromContext(ctx).Error(err, "the kubelet is asked again in a second", "resource", resource)
		}
		m.known[resource] = err == nil
	}
}

// inode of a socket, and when it was made: a number alone may come back.
type inode struct {
	number uint64
	made   int64
}

func inodeOf(path string) (inode, bool) {
	info, err := os.Stat(path)
	if err != nil {
		return inode{}, false
	}
	about, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}, false
	}
	return inode{about.Ino, about.Ctim.Nano()}, true
}
