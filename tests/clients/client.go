// One TLS connection with Go's own stack: prints protocol, cipher suite and the last line of the answer.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	address, root, version := os.Args[1], os.Args[2], os.Args[3]
	pem, err := os.ReadFile(root)
	check(err)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	number := map[string]uint16{"1.2": tls.VersionTLS12, "1.3": tls.VersionTLS13}[version]
	config := &tls.Config{RootCAs: pool, ServerName: "localhost", MinVersion: number, MaxVersion: number}
	connection, err := tls.Dial("tcp", address, config)
	check(err)
	fmt.Fprint(connection, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	answer, err := io.ReadAll(bufio.NewReader(connection))
	check(err)
	state := connection.ConnectionState()
	lines := strings.Split(strings.TrimSpace(string(answer)), "\n")
	fmt.Println(tls.VersionName(state.Version), tls.CipherSuiteName(state.CipherSuite), lines[len(lines)-1])
}

func check(err error) {
	if err != nil {
		fmt.Println("failed:", err)
		os.Exit(1)
	}
}
