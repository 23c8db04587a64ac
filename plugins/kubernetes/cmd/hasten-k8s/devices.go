package main

import (
	"context"
	"errors"
	"flag"
	"os"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/kubeletplugin"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"hasten.dev/kubernetes/internal/cdi"
	"hasten.dev/kubernetes/internal/devices"
	"hasten.dev/kubernetes/internal/dra"
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
	flags.StringVar(&options.CDI, "cdi", "", "the folder of CDI files that the runtime reads; containers get files without it if empty")
	_ = flags.Parse(arguments)
	if options.Share < 1 || *every <= 0 {
		return errors.New("--share and --every must be above zero")
	}
	manager := &devices.Manager{Options: options, Folder: *folder, Every: *every,
		Facts: func(ctx context.Context) ([]devices.Facts, error) { return devices.Read(ctx, *hasten) }}
	return manager.Run(ctrl.LoggerInto(ctx, klog.NewKlogr()))
}

func runDRA(ctx context.Context, arguments []string) error {
	ctrl.SetLogger(klog.NewKlogr())
	flags := flag.NewFlagSet("dra", flag.ExitOnError)
	hasten := flags.String("hasten", "/usr/bin/hasten", "the command that says what this node has")
	node := flags.String("node", os.Getenv("NODE_NAME"), "the node that this runs on")
	every := flags.Duration("every", 5*time.Second, "how often devices are looked at")
	specifications := flags.String("cdi", cdi.Folder, "the folder of CDI files that the runtime reads")
	share := flags.Int("share", 10, "how many claims may have one shared work queue")
	evict := flags.Bool("evict", false, "a device that is sick has a taint that evicts the pods that have it, not only one that keeps others away")
	_ = flags.Parse(arguments)
	if *node == "" || *share < 1 || *every <= 0 {
		return errors.New("--node, --share and --every are needed: set NODE_NAME, as the chart does")
	}
	api, err := client()
	if err != nil {
		return err
	}
	folder := kubeletplugin.KubeletPluginsDir + "/" + dra.Name
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return err
	}
	effect := resourceapi.DeviceTaintEffectNoSchedule
	if *evict {
		effect = resourceapi.DeviceTaintEffectNoExecute
	}
	driver := &dra.Driver{Node: *node, Options: devices.Options{Share: *share}, CDI: *specifications, Every: *every, Effect: effect,
		Facts: func(ctx context.Context) ([]devices.Facts, error) { return devices.Read(ctx, *hasten) }}
	helper, err := kubeletplugin.Start(ctx, driver, kubeletplugin.DriverName(dra.Name), kubeletplugin.NodeName(*node),
		kubeletplugin.KubeClient(api), kubeletplugin.PluginDataDirectoryPath(folder))
	if err != nil {
		return err
	}
	defer helper.Stop()
	return driver.Run(ctx, helper.PublishResources)
}
