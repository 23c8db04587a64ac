# WEBrick: a thread for each connection.
require "webrick"
require "webrick/https"

port, chain, key = ARGV
certificates = File.read(chain).scan(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/m)
server = WEBrick::HTTPServer.new(
  BindAddress: "127.0.0.1", Port: port.to_i, DocumentRoot: ".", SSLEnable: true, AccessLog: [],
  SSLCertificate: OpenSSL::X509::Certificate.new(certificates.first),
  SSLExtraChainCert: certificates.drop(1).map { |text| OpenSSL::X509::Certificate.new(text) },
  SSLPrivateKey: OpenSSL::PKey.read(File.read(key)), Logger: WEBrick::Log.new($stderr, 1)
)
trap("TERM") { server.shutdown }
server.start
