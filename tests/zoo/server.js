// Debian's Node uses the distribution's OpenSSL.
const fs = require('fs');
const https = require('https');
const [, , port, chain, key] = process.argv;
const options = { cert: fs.readFileSync(chain), key: fs.readFileSync(key) };
https.createServer(options, (_, response) => response.end('hello from the zoo\n')).listen(Number(port), '127.0.0.1');
