# Fibers, with stacks of their own, and an SNI callback that lets others run in the middle of its handshake.
require 'async'
require 'openssl'
require 'socket'

port, chain, key = ARGV
certificates = OpenSSL::X509::Certificate.load_file(chain)
context = OpenSSL::SSL::SSLContext.new
context.add_certificate(certificates.first, OpenSSL::PKey.read(File.read(key)), certificates.drop(1))
context.session_id_context = 'zoo'
context.servername_cb = lambda do |_|
  sleep 0.002
  nil
end
server = TCPServer.new('127.0.0.1', port.to_i)
server.listen(256)
Async do |task|
  loop do
    socket = server.accept
    task.async do
      connection = OpenSSL::SSL::SSLSocket.new(socket, context)
      connection.accept
      connection.sysread(4096)
      connection.syswrite("HTTP/1.0 200 OK\r\n\r\nhello from the zoo\n")
      connection.close
    rescue StandardError
      nil
    ensure
      socket.close
    end
  end
end
