import { BlockList, isIP } from 'node:net'

/**
 * Addresses of this machine, its link, private networks and what nobody has on the internet: where a registry on the
 * internet has no business to send us. Among them 169.254.169.254, where clouds keep credentials of machines.
 * @see IANA IPv4 and IPv6 Special-Purpose Address Registries
 */
const v4 = new BlockList()
for (const [net, bits] of [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const)
  v4.addSubnet(net, bits, 'ipv4')

const v6 = new BlockList()
for (const [net, bits] of [
  ['::', 128],
  ['::1', 128],
  ['64:ff9b:1::', 48],
  ['100::', 64],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const)
  v6.addSubnet(net, bits, 'ipv6')

/** Whether the address is not one of the internet. What is no address counts as internal. */
export function isInternal(address: string): boolean {
  const family = isIP(address)
  if (family === 4) return v4.check(address, 'ipv4')
  if (family === 0) return true
  const [bare = address] = address.split('%', 1) // the zone of a link-local one
  if (v6.check(bare, 'ipv6')) return true
  const words = wordsOf(bare)
  const inside = embedded(words)
  return inside !== undefined && v4.check(inside, 'ipv4')
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

/** The IPv4 address that packets to this one go to in the end: mapped, compatible, NAT64 and 6to4. */
function embedded(words: readonly number[]): string | undefined {
  const [a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0] = words
  const zeroUntilF = a === 0 && b === 0 && c === 0 && d === 0 && e === 0
  if (zeroUntilF && (f === 0xffff || f === 0)) return dotted(g, h)
  if (a === 0x64 && b === 0xff9b && c === 0 && d === 0 && e === 0 && f === 0) return dotted(g, h)
  if (a === 0x2002) return dotted(b, c)
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
