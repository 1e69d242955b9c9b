import { BlockList, isIP, SocketAddress } from 'node:net'
import type { Environment } from '@marcbachmann/cel-js'
import { define } from './define.ts'

/** An IP address. No zones, no IPv4 inside IPv6, no leading zeros, as in Kubernetes. */
class IP {
  readonly text: string
  readonly family: 4 | 6

  constructor(text: string) {
    const family = isIP(text)
    if (family === 0 || text.includes('%') || (family === 6 && text.includes('.')))
      throw new Error('ip() takes an IP address')
    this.family = family === 4 ? 4 : 6
    this.text = canonical(text, this.family)
  }

  toJSON(): string {
    return this.text
  }
}

/** A network: address and length of its prefix. */
class CIDR {
  readonly ip: IP
  readonly bits: number

  constructor(text: string) {
    const [, address = '', length = ''] = /^([^/]+)\/(0|[1-9]\d{0,2})$/.exec(text) ?? []
    if (address === '') throw new Error('cidr() takes a network, such as 10.0.0.0/8')
    this.ip = new IP(address)
    this.bits = Number(length)
    if (this.bits > width(this.ip)) throw new Error('cidr(): the prefix is longer than the address')
  }

  toJSON(): string {
    return `${this.ip.text}/${this.bits}`
  }
}

const width = ({ family }: IP): number => (family === 4 ? 32 : 128)
const familyName = ({ family }: IP) => (family === 4 ? ('ipv4' as const) : ('ipv6' as const))
const canonical = (address: string, family: 4 | 6): string =>
  new SocketAddress({ address, family: family === 4 ? 'ipv4' : 'ipv6' }).address

function contains({ ip, bits }: CIDR, other: IP): boolean {
  if (ip.family !== other.family) return false
  const list = new BlockList()
  list.addSubnet(ip.text, bits, familyName(ip))
  return list.check(other.text, familyName(other))
}

const within = (ip: IP, ...networks: readonly string[]): boolean => networks.some((one) => contains(new CIDR(one), ip))

function holds(make: () => unknown): boolean {
  try {
    make()
    return true
  } catch {
    // That it cannot be read is the answer.
    return false
  }
}

const toIP = (given: IP | string): IP => (typeof given === 'string' ? new IP(given) : given)
const toCIDR = (given: CIDR | string): CIDR => (typeof given === 'string' ? new CIDR(given) : given)

/** The first address of the network. */
function masked({ ip, bits }: CIDR): CIDR {
  const words = ip.family === 4 ? ip.text.split('.').map(Number) : groupsOf(ip.text)
  const size = ip.family === 4 ? 8 : 16
  const kept = words.map((word, i) => {
    const left = Math.max(0, Math.min(size, bits - i * size))
    return word & ~(2 ** (size - left) - 1)
  })
  const text = ip.family === 4 ? kept.join('.') : kept.map((word) => word.toString(16)).join(':')
  return new CIDR(`${text}/${bits}`)
}

function groupsOf(text: string): number[] {
  const [head = '', tail] = text.split('::')
  const words = (part: string | undefined) => (part ? part.split(':').map((word) => Number.parseInt(word, 16)) : [])
  const [first, last] = [words(head), words(tail)]
  return tail === undefined ? first : [...first, ...Array<number>(8 - first.length - last.length).fill(0), ...last]
}

/** @see Kubernetes API reference, "CEL", IP address, CIDR and URL libraries */
export function registerNetwork(cel: Environment): void {
  cel.registerType('net.IP', IP)
  define(cel, 'ip(string): net.IP', (text: string) => new IP(text))
  define(cel, 'isIP(string): bool', (text: string) => holds(() => new IP(text)))
  define(cel, 'net.IP.family(): int', ({ family }: IP) => BigInt(family))
  define(cel, 'net.IP.isUnspecified(): bool', (ip: IP) => ip.text === '0.0.0.0' || ip.text === '::')
  define(cel, 'net.IP.isLoopback(): bool', (ip: IP) => within(ip, '127.0.0.0/8', '::1/128'))
  define(cel, 'net.IP.isLinkLocalMulticast(): bool', (ip: IP) => within(ip, '224.0.0.0/24', 'ff02::/16'))
  define(cel, 'net.IP.isLinkLocalUnicast(): bool', (ip: IP) => within(ip, '169.254.0.0/16', 'fe80::/10'))
  define(
    cel,
    'net.IP.isGlobalUnicast(): bool',
    (ip: IP) =>
      !within(
        ip,
        '127.0.0.0/8',
        '::1/128',
        '169.254.0.0/16',
        'fe80::/10',
        '224.0.0.0/4',
        'ff00::/8',
        '0.0.0.0/32',
        '::/128',
        '255.255.255.255/32',
      ),
  )
  define(cel, 'string(net.IP): string', ({ text }: IP) => text)
  cel.registerOperator('net.IP == net.IP', (a: IP, b: IP) => a.text === b.text)

  cel.registerType('net.CIDR', CIDR)
  define(cel, 'cidr(string): net.CIDR', (text: string) => new CIDR(text))
  define(cel, 'isCIDR(string): bool', (text: string) => holds(() => new CIDR(text)))
  for (const type of ['net.IP', 'string'])
    define(cel, `net.CIDR.containsIP(${type}): bool`, (network: CIDR, ip: IP | string) => contains(network, toIP(ip)))
  for (const type of ['net.CIDR', 'string'])
    define(cel, `net.CIDR.containsCIDR(${type}): bool`, (network: CIDR, given: CIDR | string) => {
      const other = toCIDR(given)
      return other.bits >= network.bits && contains(network, other.ip)
    })
  define(cel, 'net.CIDR.ip(): net.IP', ({ ip }: CIDR) => ip)
  define(cel, 'net.CIDR.masked(): net.CIDR', masked)
  define(cel, 'net.CIDR.prefixLength(): int', ({ bits }: CIDR) => BigInt(bits))
  define(cel, 'string(net.CIDR): string', (network: CIDR) => network.toJSON())
  cel.registerOperator('net.CIDR == net.CIDR', (a: CIDR, b: CIDR) => a.toJSON() === b.toJSON())

  cel.registerType('kubernetes.URL', Address)
  define(cel, 'url(string): kubernetes.URL', (text: string) => new Address(text))
  define(cel, 'isURL(string): bool', (text: string) => holds(() => new Address(text)))
  define(cel, 'kubernetes.URL.getScheme(): string', ({ url }: Address) =>
    url.host === NOWHERE ? '' : url.protocol.slice(0, -1),
  )
  define(cel, 'kubernetes.URL.getHost(): string', ({ url }: Address) => (url.host === NOWHERE ? '' : url.host))
  define(cel, 'kubernetes.URL.getHostname(): string', ({ url }: Address) =>
    url.host === NOWHERE ? '' : url.hostname.replace(/^\[(.*)\]$/, '$1'),
  )
  define(cel, 'kubernetes.URL.getPort(): string', ({ url }: Address) => url.port)
  define(cel, 'kubernetes.URL.getEscapedPath(): string', ({ url }: Address) => url.pathname)
  define(cel, 'kubernetes.URL.getQuery(): map<string, list<string>>', ({ url }: Address) =>
    Object.fromEntries([...new Set(url.searchParams.keys())].map((name) => [name, url.searchParams.getAll(name)])),
  )
  cel.registerOperator('kubernetes.URL == kubernetes.URL', (a: Address, b: Address) => a.text === b.text)
}

/** Host of addresses that are a path only. */
const NOWHERE = 'nowhere.invalid'

/** An absolute address, or an absolute path. */
class Address {
  readonly text: string
  readonly url: URL

  constructor(text: string) {
    if (!/^(?:[A-Za-z][A-Za-z0-9+.-]*:\/\/|\/)/.test(text)) throw new Error('url() takes an absolute address or path')
    this.text = text
    this.url = text.startsWith('/') ? new URL(text, `none://${NOWHERE}`) : new URL(text)
  }

  toJSON(): string {
    return this.text
  }
}
