package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"hasten.dev/kubernetes/internal/devices"
)

func runDevices(ctx context.Context, arguments []string) error {
	ctrl.SetLogger(klog.NewKlogr())
	flags := flag.NewFlagSet("devices", flag.ExitOnError)
	hasten := flags.String("hasten", "/usr/bin/hasten", "the command that says what this node has")
	folder := flags.String("folder", devices.DefaultFolder, "the kubelet's folder of sockets")
	every := flags.Duration("every", 5*time.Second, "how often devices are looked at")
	var options devices.Options
	flags.StringVar(&options.Domain, "domain", "", "the domain of resource names; empty for those of Intel's plugins")
	flags.IntVar(&options.Share, "share", 10, "how many containers may have one shared work queue")
	_ = flags.Parse(arguments)
	if options.Share < 1 || *every <= 0 {
		return errors.New("--share and --every must be above zero")
	}
	manager := &devices.Manager{Options: options, Folder: *folder, Every: *every,
		Facts: func(ctx context.Context) ([]devices.Facts, error) { return devices.Read(ctx, *hasten) }}
	return manager.Run(ctrl.LoggerInto(ctx, klog.NewKlogr()))
}
