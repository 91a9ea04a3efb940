"""What the network attacks have in common. Each prints a line: its name, a tab, and REACHED when it got at
what it may not, HUNG when it was neither answered nor refused, else denied or welcome."""
import os, socket, ssl, struct, sys, threading, time, urllib.request

socket.setdefaulttimeout(12)
SITE = "site.example.com"


def run(name, attack):
    before = dict(os.environ)
    try:
        got = attack() or b""
    except (TimeoutError, socket.timeout):
        word, detail = "HUNG", ""
    except urllib.error.HTTPError as e:
        word, detail = "denied", "%d %s" % (e.code, e.read())
    except Exception as e:
        word, detail = "HUNG" if "timed out" in str(e) else "denied", "%s %s" % (type(e).__name__, e)
    else:
        got = got.encode() if isinstance(got, str) else got
        word, detail = "REACHED" if b"CANARY" in got else "welcome" if b"WELCOME" in got else "denied", got[:200]
    os.environ.clear()
    os.environ.update(before)
    print(name, word, repr(detail), sep="\t", flush=True)


def drain(s):
    got = b""
    while True:
        part = s.recv(65536)
        if not part:
            return got
        got += part


def fetch(url):
    return urllib.request.build_opener().open(url).read()


def tcp(host, port, data=b"GET / HTTP/1.0\r\nHost: %s\r\n\r\n" % SITE.encode(), family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_STREAM)
    s.connect((host, port))
    s.sendall(data)
    return drain(s)


def http(host, *requests):
    """Writes requests to port 80 of host, which may be anything, each a path and a Host."""
    text = "".join("GET %s HTTP/1.1\r\nHost: %s\r\n%s\r\n" % (path, name, "" if i + 1 < len(requests) else "Connection: close\r\n")
                   for i, (path, name) in enumerate(requests))
    return tcp(host, 80, text.encode())


def tls(host, sni, name=None, port=443):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    s = context.wrap_socket(socket.create_connection((host, port)), server_hostname=sni)
    s.sendall(b"GET / HTTP/1.0\r\nHost: %s\r\n\r\n" % (name or sni or host).encode())
    return drain(s)


def udp(host, port, family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.connect((host, port))
    s.send(b"\xc0" + b"\x00" * 1199)
    return s.recv(2048)


def hello(sni, padding=0):
    """A ClientHello by hand, with so much padding."""
    name = sni.encode()
    ext = struct.pack(">HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    while padding > 0:
        n = min(padding, 65000)
        ext += struct.pack(">HH", 21 if padding == n else 0x7a7a, n) + b"\0" * n
        padding -= n
    body = b"\x03\x03" + b"\x01" * 32 + b"\0" + b"\x00\x02\x13\x01" + b"\x01\0" + struct.pack(">H", len(ext)) + ext
    message = b"\x01" + struct.pack(">I", len(body))[1:] + body
    out = b""
    for i in range(0, len(message), 16000):
        part = message[i:i + 16000]
        out += b"\x16\x03\x01" + struct.pack(">H", len(part)) + part
    return out


def query(name, kind=1, server="127.0.0.1", stream=False):
    """Asks the name server by hand; name may be bytes of labels."""
    labels = name if isinstance(name, bytes) else b"".join(bytes([len(l)]) + l.encode() for l in name.split(".")) + b"\0"
    text = struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + labels + struct.pack(">HH", kind, 1)
    if stream:
        s = socket.create_connection((server, 53))
        s.sendall(struct.pack(">H", len(text)) + text)
        return s.recv(2048)[2:]
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((server, 53))
    s.settimeout(2)
    for again in range(4):  # as the C library does
        s.send(text)
        try:
            return s.recv(2048)
        except TimeoutError:
            pass
    return s.recv(2048)


def address(name):
    """The address of a name, by hand: what the C library takes for an address itself is a name here."""
    answer = query(name)
    if answer[3] & 15 or not struct.unpack(">H", answer[6:8])[0]:
        raise OSError("no address: code %d" % (answer[3] & 15))
    return socket.inet_ntoa(answer[-4:])
