// One TLS connection with Node's own OpenSSL: prints protocol, cipher suite and the last line of the answer.
const fs = require('fs');
const tls = require('tls');
const [address, root, version] = process.argv.slice(2);
const [host, port] = address.split(':');
const name = `TLSv${version}`;
const socket = tls.connect({
  host, port, servername: 'localhost', ca: fs.readFileSync(root), minVersion: name, maxVersion: name,
});
let answer = '';
socket.on('secureConnect', () => {
  socket.write('GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n');
});
socket.on('data', (data) => { answer += data; });
socket.on('end', () => {
  console.log(socket.getProtocol(), socket.getCipher().standardName, answer.trim().split('\n').pop());
});
socket.on('error', (error) => { console.log('failed:', error.code); process.exitCode = 1; });
