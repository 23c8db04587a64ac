//! nginx: unmodified, and with an embedded interpreter that takes part in handshakes.

use crate::animals::NOTHING;
use crate::cage::Animal;

pub(crate) const NGINX: Animal = Animal {
    name: "nginx",
    program: "nginx",
    package: "nginx",
    arguments: &["-p", "{dir}", "-e", "{dir}/error.log", "-c", "{dir}/nginx.conf"],
    files: &[("nginx.conf", include_str!("../../zoo/nginx.conf"))],
    ..NOTHING
};

/// Lua callbacks that look at the first message, sleep, and then provide the certificate: OpenSSL is asked repeatedly
/// whether the handshake can continue.
const LUA: Animal = Animal {
    name: "nginx with Lua",
    package: "libnginx-mod-http-lua",
    arguments: &["-p", "{dir}", "-e", "{dir}/error.log", "-c", "{dir}/lua.conf"],
    files: &[("lua.conf", include_str!("../../zoo/lua.conf"))],
    ..NGINX
};

/// The names of certificates come from a script, so they are loaded in a callback of each handshake.
const NJS: Animal = Animal {
    name: "nginx with njs",
    package: "libnginx-mod-http-js",
    arguments: &["-p", "{dir}", "-e", "{dir}/error.log", "-c", "{dir}/njs.conf"],
    files: &[("njs.conf", include_str!("../../zoo/njs.conf")), ("zoo.js", include_str!("../../zoo/zoo.js"))],
    ..NGINX
};

zoo! {
    #[ignore = "a part of `make zoo`"]
    nginx_with_lua => LUA;
    #[ignore = "a part of `make zoo`"]
    nginx_with_njs => NJS;
}
