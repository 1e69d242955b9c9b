import { isIP } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { addressKind, isInternal, sameAddress } from './address.ts'

const byte = fc.integer({ min: 0, max: 255 })
const word = fc.integer({ min: 0, max: 0xffff })
const dotted = (bytes: readonly number[]) => bytes.join('.')
const anyV4 = fc.tuple(byte, byte, byte, byte).map(dotted)
const hex = (bytes: readonly number[]) =>
  `${(((bytes[0] ?? 0) << 8) | (bytes[1] ?? 0)).toString(16)}:${(((bytes[2] ?? 0) << 8) | (bytes[3] ?? 0)).toString(16)}`

describe('an address', () => {
  it.each([
    ...['127.0.0.1', '127.255.255.255', '0.0.0.0', '10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1'],
    ...['169.254.169.254', '100.64.0.1', '100.127.255.255', '198.18.0.1', '224.0.0.1', '255.255.255.255', '240.0.0.1'],
    ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'fc00::1', 'fd12:3456::1', 'fec0::1', 'ff02::1', '100::1'],
    ...['::ffff:127.0.0.1', '::ffff:a9fe:a9fe', '::127.0.0.1', '64:ff9b::10.0.0.1', '64:ff9b:1::1', '2002:7f00:1::'],
    ...['', 'localhost', '1.2.3', '1.2.3.4.5', 'nonsense', '::g'],
  ])('%j is internal, or none', (address) => expect(isInternal(address)).toBe(true))

  it.each([
    ...['8.8.8.8', '172.15.255.255', '172.32.0.0', '192.167.255.255', '169.253.1.1', '100.63.255.255', '100.128.0.0'],
    ...['223.255.255.255', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8', '2002:808:808::', '2001:db9::1'],
    ...['::ffff:0:808:808', '2001:0:4136:e378:8000:63bf:f7f7:f7f7', '2001:db9::200:5efe:808:808'],
  ])('%s is of the internet', (address) => expect(isInternal(address)).toBe(false))

  it.each([
    ...([
      '169.254.169.254',
      '100.100.100.200',
      'fd00:ec2::254',
      'fd00:c1::a9fe:a9fe',
      'fd00:42::42',
      'fd12:3456::5efe:a9fe:a9fe',
      '::ffff:169.254.169.254',
      '64:ff9b::a9fe:a9fe',
      '64:ff9b:1::a9fe:a9fe',
      '64:ff9b:1:a9fe:a9:fe00::',
      '64:ff9b:1:a9:fe:a9fe::',
      '64:ff9b:1:0:a9:fea9:fe00::',
    ] as const),
    ...(['::ffff:0:a9fe:a9fe', '2001:0:4136:e378:8000:63bf:5601:5601', '2001:db9::5efe:a9fe:a9fe'] as const),
    ...(['::ffff:6464:64c8', 'FD00:EC2:0:0:0:0:0:254', '2002:a9fe:a9fe::', '168.63.129.16'] as const),
  ])('%s is of a metadata service', (address) => expect(addressKind(address)).toBe('metadata'))

  it.each([
    ['169.254.0.1', 'link-local'],
    ['fe80::1%eth0', 'link-local'],
    ['febf::1', 'link-local'],
    ['::ffff:169.254.1.1', 'link-local'],
    ['0.0.0.0', 'unusable'],
    ['::', 'unusable'],
    ['::ffff:0.0.0.0', 'unusable'],
    ['2002::', 'unusable'],
    ['239.1.1.1', 'unusable'],
    ['255.255.255.255', 'unusable'],
    ['ff02::1', 'unusable'],
    ['127.0.0.2', 'loopback'],
    ['::1', 'loopback'],
    ['::ffff:127.0.0.1', 'loopback'],
    ['10.1.2.3', 'private'],
    ['100.64.0.1', 'shared'],
    ['198.19.255.255', 'shared'],
    ['fd00:ec2::23', 'metadata'],
    ['8.8.8.8', 'internet'],
    ['nonsense', undefined],
  ])('%s is %s', (address, kind) => expect(addressKind(address)).toBe(kind))

  it('of IPv4 inside of IPv6 is judged as that, however it is written', () =>
    fc.assert(
      fc.property(fc.tuple(byte, byte, byte, byte), (bytes) => {
        const inside = isInternal(dotted(bytes))
        for (const written of [`::ffff:${dotted(bytes)}`, `::FFFF:${hex(bytes)}`, `0:0:0:0:0:ffff:${hex(bytes)}`]) {
          expect(isIP(written)).toBe(6)
          expect(isInternal(written), written).toBe(inside)
          expect(sameAddress(written, dotted(bytes)), written).toBe(true)
        }
        expect(isInternal(`64:ff9b::${dotted(bytes)}`)).toBe(inside)
      }),
    ))

  it('is the same as itself written out, and as no other', () =>
    fc.assert(
      fc.property(fc.array(word, { minLength: 8, maxLength: 8 }), anyV4, (words, other) => {
        const long = words.map((one) => one.toString(16).padStart(4, '0')).join(':')
        const short = new URL(`http://[${long}]/`).hostname.slice(1, -1)
        expect(sameAddress(long, short)).toBe(true)
        expect(sameAddress(long, long.toUpperCase())).toBe(true)
        expect(isInternal(long)).toBe(isInternal(short))
        const isMapped = words.slice(0, 5).every((one) => one === 0) && words[5] === 0xffff
        if (!isMapped) expect(sameAddress(long, other)).toBe(false)
      }),
    ))

  it('of any text is answered without a throw', () =>
    fc.assert(fc.property(fc.string(), (text) => void isInternal(text))))
})
