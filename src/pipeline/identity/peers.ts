import { X509Certificate } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { BlockList, isIP } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Clock } from '#model'
import { UnsafeConfigurationError } from './errors.ts'

/** An IPv4 peer counts as such when it arrives on an IPv6 socket. */
export const plainAddress = (address: string): string => address.replace(/^::ffff:(?=\d+\.)/i, '')

/** Membership in a list of addresses and CIDR blocks. @throws UnsafeConfigurationError for an entry that is neither */
export function peerList(entries: readonly string[]): (address: string) => boolean {
  const list = new BlockList()
  for (const entry of entries) addPeer(list, entry.trim())
  return (address) => {
    const plain = plainAddress(address)
    const family = isIP(plain)
    return family !== 0 && list.check(plain, family === 4 ? 'ipv4' : 'ipv6')
  }
}

function addPeer(list: BlockList, entry: string): void {
  const [address = '', prefix, ...rest] = entry.split('/')
  const family = isIP(address)
  const widest = family === 4 ? 32 : 128
  const bits = prefix === undefined ? widest : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN
  if (family === 0 || rest.length > 0 || !(bits >= 0 && bits <= widest))
    throw new UnsafeConfigurationError(
      `${JSON.stringify(entry)} in TRUSTED_PROXIES is neither an address nor a CIDR block`,
    )
  list.addSubnet(address, bits, family === 4 ? 'ipv4' : 'ipv6')
}

const clientAuth = '1.3.6.1.5.5.7.3.2'

/**
 * Whether the peer showed a client certificate signed by one of these CAs, valid now, for clients, with one of the names
 * where names are given. TLS itself has proved that the peer holds the key; who signed is decided here, whatever else the
 * server's TLS accepts.
 */
export function clientOf(
  { pem, names }: { readonly pem: string; readonly names?: readonly string[] },
  clock: Clock,
): (request: IncomingMessage) => boolean {
  const authorities = readAuthorities(pem)
  const wanted = names && new Set(names)
  return ({ socket }) => {
    const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined
    if (!certificate || certificate.ca) return false
    const now = clock.now()
    if (now < Date.parse(certificate.validFrom) || now > Date.parse(certificate.validTo)) return false
    // Absent extended usage: the issuer did not narrow it.
    const usages: readonly string[] = certificate.keyUsage ?? []
    if (usages.length > 0 && !usages.includes(clientAuth)) return false
    if (!authorities.some((ca) => certificate.checkIssued(ca) && certificate.verify(ca.publicKey))) return false
    return !wanted || namesOf(certificate).some((name) => wanted.has(name))
  }
}

function readAuthorities(pem: string): readonly X509Certificate[] {
  const blocks = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []
  if (blocks.length === 0) throw new UnsafeConfigurationError('TRUSTED_PROXY_CA_FILE holds no certificate in PEM form')
  return blocks.map((block) => {
    const certificate = new X509Certificate(block)
    if (!certificate.ca) throw new UnsafeConfigurationError('TRUSTED_PROXY_CA_FILE holds a certificate that is no CA')
    return certificate
  })
}

function namesOf(certificate: X509Certificate): readonly string[] {
  // Node types the legacy object as empty; a name that stands twice is a list there.
  const { subject } = certificate.toLegacyObject() as unknown as { readonly subject?: { readonly CN?: unknown } }
  const common = typeof subject?.CN === 'string' ? [subject.CN] : []
  const alternatives = certificate.subjectAltName ?? ''
  // A quoted entry hides a comma or a quote inside a name: such a certificate counts by its common name alone.
  if (alternatives.includes('"')) return common
  return [...common, ...[...alternatives.matchAll(/(?:^|, )DNS:([^,]+)/g)].map(([, name = '']) => name)]
}
