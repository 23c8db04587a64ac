# IO::Socket::SSL with IO::Poll: handshakes that do not block, finished in place with select.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::SSL;

my ($port, $chain, $key) = @ARGV;
my $listener = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 128, ReuseAddr => 1, Proto => 'tcp'
) or die "cannot listen: $!";
$SIG{PIPE} = 'IGNORE';
while (my $socket = $listener->accept) {
    $socket->blocking(0);
    IO::Socket::SSL->start_SSL($socket, SSL_server => 1, SSL_cert_file => $chain, SSL_key_file => $key,
        SSL_startHandshake => 0) or next;
    my $until = time + 5;
    until ($socket->accept_SSL) {
        last if time > $until or ($SSL_ERROR != SSL_WANT_READ and $SSL_ERROR != SSL_WANT_WRITE);
        IO::Select->new($socket)->can_read(5);
    }
    $socket->blocking(1);
    while (defined(my $line = <$socket>)) { last if $line eq "\r\n" }
    print {$socket} "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from the zoo\n";
    $socket->close;
}
