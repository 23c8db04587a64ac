// Package devices offers QAT, IAA, DSA and DLB of a node to pods, as a device plugin of the kubelet. What a node has is what
// `hasten check --json` says, and nothing else: there is no second discovery.
package devices

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"
)

// schema of `hasten check --json` that this program understands.
const schema = 1

// Facts of one device; names are those of `hasten check --json`.
type Facts struct {
	Kind     string  `json:"kind"`
	Model    string  `json:"model"`
	Address  string  `json:"address"`
	Virtual  bool    `json:"virtual_function"`
	Driver   *string `json:"driver"`
	State    *string `json:"state"`
	NUMA     *int64  `json:"numa_node"`
	File     *File   `json:"file"`
	QAT      *QAT    `json:"qat"`
	Unit     *IDXD   `json:"unit"`
	Possible []int   `json:"virtual_functions"`
}

// File by which a process uses a device.
type File struct {
	Path   string `json:"path"`
	Access string `json:"access"`
}

// QAT has what only these devices have.
type QAT struct {
	Services    *string `json:"services"`
	Heartbeat   *string `json:"heartbeat"`
	Physical    *string `json:"physical_function"`
	Firmware    *string `json:"firmware"`
	FatalErrors *uint64 `json:"fatal_errors"`
}

// IDXD is a DSA or IAA device as its driver shows it.
type IDXD struct {
	Name   string  `json:"name"`
	State  *string `json:"state"`
	PASID  *bool   `json:"pasid"`
	Queues []Queue `json:"work_queues"`
	Groups []Group `json:"groups"`
}

// Queue of an IDXD device.
type Queue struct {
	Name    string  `json:"name"`
	Enabled bool    `json:"enabled"`
	Mode    *string `json:"mode"`
	Type    string  `json:"type"`
	Group   *uint32 `json:"group"`
	Size    *uint32 `json:"size"`
	File    File    `json:"file"`
}

// Group of engines.
type Group struct {
	Number  uint32 `json:"number"`
	Engines int    `json:"engines"`
}

// Read asks the command.
func Read(ctx context.Context, hasten string) ([]Facts, error) {
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	output, err := exec.CommandContext(ctx, hasten, "check", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("%s check --json: %w", hasten, err)
	}
	return Parse(output)
}

// Parse reads what the command says.
func Parse(text []byte) ([]Facts, error) {
	var report struct {
		Schema int    `json:"schema"`
		Hasten string `json:"hasten"`
		Host   struct {
			Devices []Facts `json:"devices"`
		} `json:"host"`
	}
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, fmt.Errorf("`hasten check --json` cannot be read: %w", err)
	}
	if report.Schema != schema {
		return nil, fmt.Errorf("hasten %s speaks schema %d, and this program %d: use both from one image", report.Hasten, report.Schema, schema)
	}
	return report.Host.Devices, nil
}
