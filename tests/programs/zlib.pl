# Everything that Perl's modules do with zlib, once each; prints what must not depend on who does it.
use strict;
use warnings;

use Compress::Raw::Zlib;
use Compress::Zlib ();
use Digest::SHA qw(sha256_hex);
use IO::Compress::Deflate qw(deflate $DeflateError);
use IO::Compress::Gzip qw(gzip $GzipError);
use IO::Compress::Zip qw(zip $ZipError);
use IO::Uncompress::AnyInflate qw(anyinflate $AnyInflateError);

open my $file, '<:raw', $ARGV[0] or die "$ARGV[0]: $!";
my $page = do { local $/; <$file> };

sub digest { length($_[0]) . ' ' . substr sha256_hex($_[0]), 0, 16 }
sub code { 0 + $_[0] }

# One stream, in pieces, with a change of parameters, a flush of every kind, and a copy of what zlib says of it.
sub stream {
    my ($level, $bits, $strategy, $dictionary) = @_;
    my @dictionary = $dictionary ? (-Dictionary => $dictionary) : ();
    my ($packer, $status) = Compress::Raw::Zlib::Deflate->new(
        -Level => $level, -WindowBits => $bits, -Strategy => $strategy, -AppendOutput => 1, @dictionary);
    my ($packed, $at) = ('', 0);
    my @log = code($status);
    for my $flush (Z_NO_FLUSH, Z_SYNC_FLUSH, Z_FULL_FLUSH, Z_PARTIAL_FLUSH, Z_BLOCK) {
        push @log, code($packer->deflate(substr($page, $at, 3000 + $at), $packed));
        $at += 3000 + $at;
        push @log, code($packer->flush($packed, $flush));
        push @log, $packer->total_in;
    }
    push @log, code($packer->deflateTune(8, 16, 128, 64));
    push @log, code($packer->deflateParams(-Level => 9, -Strategy => Z_FILTERED));
    push @log, code($packer->deflate(substr($page, $at), $packed)), code($packer->flush($packed, Z_FINISH));
    push @log, $packer->total_in, code($packer->deflateReset);
    my ($unpacker, $first) = Compress::Raw::Zlib::Inflate->new(-WindowBits => $bits, -ConsumeInput => 0, @dictionary);
    my $plain = '';
    push @log, code($first), code($unpacker->inflate($packed, $plain));
    push @log, $unpacker->total_out, $unpacker->dict_adler;
    print join(' ', $level, $bits, $strategy, @log, digest($plain)), "\n";
}

for my $level (0, 1, 4, 6, 9, -1) {
    stream($level, $_, Z_DEFAULT_STRATEGY) for -15, 15, WANT_GZIP, 9, -10;
    stream($level, 15, $_) for Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED;
    stream($level, 15, Z_DEFAULT_STRATEGY, substr $page, 0, 2000);
}

for my $pack (sub { gzip($_[0], $_[1], -Name => 'page', -Comment => 'of text', -Time => 1) or die $GzipError },
    sub { deflate($_[0], $_[1], -Level => 3) or die $DeflateError },
    sub { zip($_[0], $_[1], Name => 'page') or die $ZipError }) {
    my ($packed, $plain);
    $pack->(\$page, \$packed);
    anyinflate(\$packed, \$plain) or die $AnyInflateError;
    print digest($plain), "\n";
    $packed = substr $packed, 0, length($packed) / 2;
    print anyinflate(\$packed, \$plain) ? 'whole' : "$AnyInflateError", "\n";
}

print digest(Compress::Zlib::memGunzip(Compress::Zlib::memGzip($page))), "\n";
print digest(Compress::Zlib::uncompress(Compress::Zlib::compress($page, 7))), "\n";
print crc32($page), ' ', adler32($page), ' ', Compress::Raw::Zlib::crc32_combine(crc32('ab'), crc32($page), length $page), ' ',
    Compress::Raw::Zlib::adler32_combine(adler32('ab'), adler32($page), length $page), "\n";
$| = 1;
print "end\n";
<STDIN>;
