/**
 * The network of an address, as what counts for one peer: an IPv4 address itself, the first 64 bits of an IPv6 address. Whoever
 * has one IPv6 address has 2^64 of them. An IPv4 address in an IPv6 socket (`::ffff:192.0.2.1`) counts as itself.
 */
export function networkOf(address: string): string {
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1]
  if (mapped !== undefined || !address.includes(':')) return mapped ?? address
  const [head = '', tail] = address.split('%')[0]?.split('::') ?? []
  const groups = head === '' ? [] : head.split(':')
  const after = tail ? tail.split(':') : []
  const zeros =
    tail === undefined ? [] : Array.from({ length: Math.max(0, 8 - groups.length - after.length) }, () => '0')
  return [...groups, ...zeros, ...after].slice(0, 4).join(':')
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|::1|\[::1\])$/i

/** Whether a host is this machine itself, by its name or address. */
export const isLoopback = (host: string): boolean => LOOPBACK.test(host)

/** The host of a `Host` header, in small letters and without its port. */
export function hostName(header: string): string {
  const match = /^(\[[0-9a-f:.]+\]|[^:]*)(:\d+)?$/i.exec(header.trim())
  return match?.[1]?.toLowerCase() ?? header
}
