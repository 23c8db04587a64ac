<?php
// One connection after the other, each in its own time.
[, $port, $chain, $key] = $argv;
$context = stream_context_create(['ssl' => ['local_cert' => $chain, 'local_pk' => $key]]);
$server = stream_socket_server("tcp://127.0.0.1:$port", $number, $text, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, $context);
while (true) {
    $connection = @stream_socket_accept($server, 60);
    if ($connection === false) continue;
    stream_set_timeout($connection, 5);
    if (@stream_socket_enable_crypto($connection, true, STREAM_CRYPTO_METHOD_TLS_SERVER)) {
        for ($line = ''; $line !== "\r\n" && $line !== false; $line = fgets($connection));
        @fwrite($connection, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from the zoo\n");
    }
    fclose($connection);
}
