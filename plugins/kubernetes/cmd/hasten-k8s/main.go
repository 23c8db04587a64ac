// hasten-k8s is hasten's part in Kubernetes: one program, a subcommand for each role.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

const usage = `Pods of a labelled namespace, doing the same work with less CPU

Usage: hasten-k8s <COMMAND> [OPTIONS]

Commands:
  webhook        Accelerate new pods of labelled namespaces
  agent          On each node: install the libraries, count by pod, carry the kill switch into running pods
  devices        On each node: offer QAT, IAA, DSA and DLB to pods, as a device plugin of the kubelet
  dra            The same by Dynamic Resource Allocation, instead of the device plugin
  explain        Say what is done to a pod, what is not, and what to do
  copy           Copy the libraries into a pod's volume
  preview        Show what would be done to the pods of a manifest, before anything is

` + "`hasten-k8s COMMAND -h` lists the options of a command.\n"

type command func(context.Context, []string) error

var commands = map[string]command{"webhook": runWebhook, "copy": runCopy, "preview": runPreview, "agent": runAgent, "explain": runExplain, "devices": runDevices, "dra": runDRA}

func main() {
	if len(os.Args) < 2 || os.Args[1] == "-h" || os.Args[1] == "--help" || os.Args[1] == "help" {
		fmt.Print(usage)
		return
	}
	run, known := commands[os.Args[1]]
	if !known {
		fail(fmt.Errorf("there is no command %q: `hasten-k8s --help` lists them", os.Args[1]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[2:]); err != nil {
		stop()
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "hasten-k8s:", err)
	os.Exit(1)
}
