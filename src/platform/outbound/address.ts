import { BlockList, isIP } from 'node:net'

/** Where an address leads. `shared`: between carriers, or for benchmarks; `unusable`: nobody is there to be asked, or everybody is. */
export type AddressKind = 'internet' | 'private' | 'shared' | 'loopback' | 'link-local' | 'metadata' | 'unusable'

type Net = readonly [net: string, bits: number]

/**
 * The first that holds decides; what none holds is of the internet.
 * @see IANA IPv4 and IPv6 Special-Purpose Address Registries; metadata: where clouds give machines their credentials
 */
const V4: readonly (readonly [AddressKind, readonly Net[]])[] = [
  ['metadata', [net('169.254.169.254'), net('100.100.100.200'), net('192.0.0.192'), net('168.63.129.16')]],
  ['link-local', [['169.254.0.0', 16]]],
  ['loopback', [['127.0.0.0', 8]]],
  [
    'unusable',
    [
      ['0.0.0.0', 8],
      ['224.0.0.0', 4],
      ['240.0.0.0', 4],
    ],
  ],
  [
    'private',
    [
      ['10.0.0.0', 8],
      ['172.16.0.0', 12],
      ['192.0.0.0', 24],
      ['192.168.0.0', 16],
    ],
  ],
  [
    'shared',
    [
      ['100.64.0.0', 10],
      ['198.18.0.0', 15],
    ],
  ],
]
const V6: typeof V4 = [
  [
    'metadata',
    [
      // All that a cloud answers of itself there, credentials of pods among it.
      ['fd00:ec2::', 32],
      ['fd20:ce::', 64],
      ['fd00:c1::', 32],
      ['fd00:42::', 32],
    ],
  ],
  ['loopback', [['::1', 128]]],
  [
    'unusable',
    [
      ['::', 128],
      ['ff00::', 8],
      ['100::', 64],
    ],
  ],
  ['link-local', [['fe80::', 10]]],
  [
    'private',
    [
      ['64:ff9b:1::', 48],
      ['fc00::', 7],
      ['fec0::', 10],
    ],
  ],
]
const tableOf = (rows: typeof V4, family: 'ipv4' | 'ipv6') =>
  rows.map(([kind, nets]) => {
    const list = new BlockList()
    for (const [address, bits] of nets) list.addSubnet(address, bits, family)
    return { kind, list }
  })
const v4 = tableOf(V4, 'ipv4')
const v6 = tableOf(V6, 'ipv6')

function net(address: string): Net {
  return [address, 32]
}

/** Where packets to this address go in the end; undefined for what is no address. IPv4 inside of IPv6 is judged as that. */
export function addressKind(address: string): AddressKind | undefined {
  const family = isIP(address)
  if (family === 0) return undefined
  if (family === 4) return v4.find(({ list }) => list.check(address, 'ipv4'))?.kind ?? 'internet'
  const [bare = address] = address.split('%', 1) // the zone of a link-local one
  const translated = translatedKind(bare)
  if (translated) return translated
  const own = v6.find(({ list }) => list.check(bare, 'ipv6'))?.kind
  const inside = embeddedAddress(bare)
  const innerKind = inside === undefined ? undefined : addressKind(inside)
  if (own === 'private' && innerKind && NEVER_PRIVATE.has(innerKind)) return innerKind
  return own ?? innerKind ?? 'internet'
}

/** Octets that hold the IPv4 address behind a prefix of 48, 56, 64 and 96 bits. @see RFC 6052, section 2.2 */
const TRANSLATED = [
  [6, 7, 9, 10],
  [7, 9, 10, 11],
  [9, 10, 11, 12],
  [12, 13, 14, 15],
] as const
/** What stays closed behind a private network as well. */
const NEVER_PRIVATE: ReadonlySet<AddressKind> = new Set(['metadata', 'link-local', 'loopback'])

/** What an address of a network's own translator (RFC 8215) may lead to: how long the prefix is only that network knows. */
function translatedKind(address: string): AddressKind | undefined {
  const words = wordsOf(address)
  if (words[0] !== 0x64 || words[1] !== 0xff9b || words[2] !== 1) return undefined
  const octets = words.flatMap((word) => [word >> 8, word & 255])
  const kinds = TRANSLATED.map((places) => addressKind(places.map((at) => octets[at]).join('.')))
  return kinds.find((kind) => kind !== undefined && NEVER_PRIVATE.has(kind))
}

/** Whether the address is not one of the internet. What is no address counts as internal. */
export const isInternal = (address: string): boolean => addressKind(address) !== 'internet'

/** The IPv4 address that packets to this IPv6 address go to in the end. */
export function embeddedAddress(address: string): string | undefined {
  return embedded(wordsOf(address.split('%', 1)[0] ?? address))
}

/** The same address, however it is written: an IPv4 address inside of IPv6 is that IPv4 address. */
export function sameAddress(one: string, other: string): boolean {
  return plain(one) === plain(other)
}

function plain(address: string): string {
  if (isIP(address) !== 6) return address
  const words = wordsOf(address.split('%', 1)[0] ?? address)
  const isMapped = words.slice(0, 5).every((word) => word === 0) && words[5] === 0xffff
  return isMapped ? dotted(words[6] ?? 0, words[7] ?? 0) : words.map((word) => word.toString(16)).join(':')
}

/**
 * The IPv4 address that packets to this one go to in the end: mapped, compatible, NAT64, translated, 6to4, Teredo and ISATAP.
 * @see RFC 4291, 6052, 2765, 3056, 4380, 5214
 */
function embedded(words: readonly number[]): string | undefined {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = words
  const zeroUntilF = a === 0 && b === 0 && c === 0 && d === 0 && e === 0
  if (zeroUntilF && (f === 0xffff || f === 0)) return dotted(g, h)
  if (a === 0x64 && b === 0xff9b && c === 0 && d === 0 && e === 0 && f === 0) return dotted(g, h)
  if (a === 0 && b === 0 && c === 0 && d === 0 && e === 0xffff && f === 0) return dotted(g, h)
  if (a === 0x2002) return dotted(b, c)
  if (a === 0x2001 && b === 0) return dotted(g ^ 0xffff, h ^ 0xffff)
  if ((e === 0 || e === 0x200) && f === 0x5efe) return dotted(g, h)
  return undefined
}

const dotted = (high: number, low: number): string => [high >> 8, high & 255, low >> 8, low & 255].join('.')

/** The eight 16-bit words of a valid IPv6 address without zone. */
function wordsOf(address: string): number[] {
  const tail = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  const hex = tail
    ? `${tail[1]}${((Number(tail[2]) << 8) | Number(tail[3])).toString(16)}:${((Number(tail[4]) << 8) | Number(tail[5])).toString(16)}`
    : address
  const [left = '', right] = hex.split('::')
  const words = (text: string) => (text === '' ? [] : text.split(':').map((word) => Number.parseInt(word, 16)))
  if (right === undefined) return words(left)
  const before = words(left)
  const after = words(right)
  return [...before, ...Array<number>(Math.max(0, 8 - before.length - after.length)).fill(0), ...after]
}
