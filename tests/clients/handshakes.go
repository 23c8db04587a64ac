// handshakes ADDRESS ROOT: Go's own TLS and HTTP against a server, each protocol, group and way to resume a few times. Every
// line is something that must not depend on how the server computes.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
)

const rounds = 3

func main() {
	root, err := os.ReadFile(os.Args[2])
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(root)
	for name, config := range configurations() {
		config.RootCAs, config.ServerName = roots, "localhost"
		for round := range rounds {
			outcome, err := get(os.Args[1], config)
			if err != nil {
				// Without the address, which is another each time.
				var told *url.Error
				if errors.As(err, &told) {
					err = told.Err
				}
				outcome = err.Error()
			}
			fmt.Println(name, round, outcome)
		}
	}
}

func configurations() map[string]*tls.Config {
	return map[string]*tls.Config{
		"default":   {},
		"TLS 1.2":   {MaxVersion: tls.VersionTLS12},
		"TLS 1.1":   {MinVersion: tls.VersionTLS11, MaxVersion: tls.VersionTLS11},
		"X25519":    {CurvePreferences: []tls.CurveID{tls.X25519}},
		"P-256":     {CurvePreferences: []tls.CurveID{tls.CurveP256}},
		"P-384":     {CurvePreferences: []tls.CurveID{tls.CurveP384}},
		"resumed":   {ClientSessionCache: tls.NewLRUClientSessionCache(4)},
		"resumed 2": {ClientSessionCache: tls.NewLRUClientSessionCache(4), MaxVersion: tls.VersionTLS12},
	}
}

// get makes a connection of its own, as HTTP/2 where the server has it.
func get(address string, config *tls.Config) (string, error) {
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableKeepAlives: true}
	answer, err := (&http.Client{Transport: transport}).Get("https://" + address + "/")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	state := answer.TLS
	return fmt.Sprintf("%s %s %s resumed %t, %s %s %q", tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite),
		state.CurveID, state.DidResume, answer.Proto, answer.Status, body), err
}
