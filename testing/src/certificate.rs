//! Certificates for servers of tests, of an authority that only the test trusts.

use crate::folder::Folder;
use crate::program::{Program, output};
use std::net::IpAddr;

const OPENSSL: Program = Program::new("openssl", "openssl");

/// Writes `tls/ca.pem`, `tls/cert.pem` and `tls/key.pem` for a server with an address. The folder `tls` exists.
pub(crate) fn make_certificate(folder: &Folder, ip: IpAddr, name: &str) {
    folder.write("tls/extensions", &format!("subjectAltName=IP:{ip}\n"));
    let curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    for line in [
        format!("req -x509 {curve} -keyout ca.key -out ca.pem -days 30 -subj /CN=authority"),
        format!("req {curve} -keyout key.pem -out request.pem -subj /CN={name}"),
        "x509 -req -in request.pem -CA ca.pem -CAkey ca.key -CAcreateserial -days 30 -extfile extensions -out cert.pem"
            .to_owned(),
    ] {
        let mut command = OPENSSL.command();
        command
            .args(line.split_whitespace())
            .current_dir(folder.path().join("tls"));
        output(&mut command, OPENSSL);
    }
}
