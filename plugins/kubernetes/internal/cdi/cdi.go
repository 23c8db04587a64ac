// Package cdi writes what the Container Device Interface wants to know: which files of a node are which device. The runtime reads it
// when it makes a container.
package cdi

import (
	"encoding/json"
	"os"
	"path/filepath"
)

// Folder is where every runtime looks.
const Folder = "/var/run/cdi"

// Spec is as much of a specification as is needed.
type Spec struct {
	Version string   `json:"cdiVersion"`
	Kind    string   `json:"kind"`
	Devices []Device `json:"devices"`
}

// Device is what a container may get by its name.
type Device struct {
	Name  string `json:"name"`
	Edits Edits  `json:"containerEdits"`
}

// Edits are what it gets.
type Edits struct {
	Nodes []Node   `json:"deviceNodes"`
	Env   []string `json:"env,omitempty"`
}

// Node is a file below /dev.
type Node struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
}

// Of is a device that is some files.
func Of(name string, files []string) Device {
	device := Device{Name: name}
	for _, file := range files {
		device.Edits.Nodes = append(device.Edits.Nodes, Node{Path: file, Permissions: "rw"})
	}
	return device
}

// File of a specification, by a name for it.
func File(folder, name string) string { return filepath.Join(folder, "hasten.dev-"+name+".json") }

// Write makes a file whole or not at all: the runtime may read it at any time.
func Write(folder, name, kind string, devices []Device) error {
	text, err := json.Marshal(Spec{Version: "0.6.0", Kind: kind, Devices: devices})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	// The runtime reads what ends in .json.
	fresh := File(folder, name) + ".new"
	if err := os.WriteFile(fresh, text, 0o644); err != nil {
		return err
	}
	return os.Rename(fresh, File(folder, name))
}
