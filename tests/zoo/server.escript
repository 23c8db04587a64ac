#!/usr/bin/env escript
%% Erlang: TLS of its own, on the distribution's libcrypto.
main([Port, Chain, Key]) ->
    {ok, _} = application:ensure_all_started(ssl),
    {ok, Listener} = ssl:listen(list_to_integer(Port), [
        {ip, {127, 0, 0, 1}}, {certfile, Chain}, {keyfile, Key}, {active, false}, {reuseaddr, true}, {backlog, 128},
        {versions, ['tlsv1.2', 'tlsv1.3']}, {packet, raw}, binary, {log_level, none}
    ]),
    accept(Listener).

accept(Listener) ->
    {ok, Connection} = ssl:transport_accept(Listener),
    Process = spawn(fun() -> receive go -> attend(Connection) end end),
    ssl:controlling_process(Connection, Process),
    Process ! go,
    accept(Listener).

attend(Connection) ->
    case ssl:handshake(Connection, 5000) of
        {ok, Secure} ->
            ssl:recv(Secure, 0, 5000),
            ssl:send(Secure, <<"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello from the zoo\n">>),
            ssl:close(Secure);
        _ ->
            ok
    end.
