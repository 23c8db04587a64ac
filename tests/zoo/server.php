<?php
// One connection after the other, each in its own time. PHP 8.3 and newer look at how much is left of the C stack in each
// call from C to PHP: there are some hundred of them in one another before each handshake, and within the answer.
function deep(int $depth): int {
    return $depth === 0 ? 0 : 1 + array_map('deep', [$depth - 1])[0];
}

[, $port, $chain, $key] = $argv;
$context = stream_context_create(['ssl' => ['local_cert' => $chain, 'local_pk' => $key]]);
$server = stream_socket_server("tcp://127.0.0.1:$port", $number, $text, STREAM_SERVER_BIND | STREAM_SERVER_LISTEN, $context);
while (true) {
    $connection = @stream_socket_accept($server, 60);
    if ($connection === false) continue;
    stream_set_timeout($connection, 5);
    deep(500);
    if (@stream_socket_enable_crypto($connection, true, STREAM_CRYPTO_METHOD_TLS_SERVER)) {
        for ($line = ''; $line !== "\r\n" && $line !== false; $line = fgets($connection));
        $text = deep(500) === 500 ? 'hello from the zoo' : 'a wrong depth';
        @fwrite($connection, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n$text\n");
    }
    fclose($connection);
}
