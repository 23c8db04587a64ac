// The certificate's name, from the first message of the client on.
function chain(request) {
    return "{chain}";
}

function key(request) {
    return "{key}";
}

function hello(request) {
    request.return(200, "hello from the zoo\n");
}

export default { chain, key, hello };
