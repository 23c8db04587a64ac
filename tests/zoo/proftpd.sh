# Nobody else may read a key, and which directive names it depends on its kind.
chmod 600 {key}
awk '/BEGIN CERT/ { number++ } number > 1' {chain} >issuers.pem
kind=RSA
openssl pkey -in {key} -noout -text | grep -q 'ASN1 OID' && kind=EC
cat >proftpd.conf <<END
LoadModule mod_tls.c
ServerType standalone
DefaultAddress 127.0.0.1
Port {port}
UseIPv6 off
User root
Group root
PidFile {dir}/proftpd.pid
ScoreboardFile {dir}/proftpd.{port}.scores
DelayEngine off
TLSEngine on
TLSProtocol TLSv1.2 TLSv1.3
TLS${kind}CertificateFile {chain}
TLS${kind}CertificateKeyFile {key}
TLSCertificateChainFile {dir}/issuers.pem
TLSVerifyClient off
END
