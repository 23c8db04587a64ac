# An event loop of nio4r with a callback in Ruby, which looks at how much stack is left.
require "nio"
require "openssl"
require "socket"

port, chain, key = ARGV
context = OpenSSL::SSL::SSLContext.new
certificates = File.read(chain).scan(/-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----/m)
context.cert = OpenSSL::X509::Certificate.new(certificates.first)
context.extra_chain_cert = certificates.drop(1).map { |text| OpenSSL::X509::Certificate.new(text) }
context.key = OpenSSL::PKey.read(File.read(key))
context.servername_cb = ->(_) { context }

selector = NIO::Selector.new
listener = TCPServer.new("127.0.0.1", port.to_i)
listener.listen(512)

step = lambda do |monitor, socket, state|
  begin
    if state[:stage] == :accept
      socket.accept_nonblock
      state[:stage] = :read
    end
    state[:read] << socket.read_nonblock(4096)
    next unless state[:read].end_with?("\r\n\r\n")
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 19\r\nConnection: close\r\n\r\nhello from the zoo\n")
    selector.deregister(socket.to_io)
    socket.close
  rescue IO::WaitReadable
    monitor.interests = :r
  rescue IO::WaitWritable
    monitor.interests = :w
  rescue SystemStackError, OpenSSL::SSL::SSLError, EOFError, SystemCallError
    selector.deregister(socket.to_io)
    socket.to_io.close
  end
end

selector.register(listener, :r).value = lambda do
  begin
    loop do
      plain = listener.accept_nonblock
      socket = OpenSSL::SSL::SSLSocket.new(plain, context)
      socket.sync_close = true
      monitor = selector.register(plain, :r)
      state = { stage: :accept, read: +"" }
      monitor.value = -> { step.call(monitor, socket, state) }
    end
  rescue IO::WaitReadable
    nil
  end
end

loop { selector.select { |monitor| monitor.value.call } }
