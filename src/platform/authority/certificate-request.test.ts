import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { CertificateRequestError, parseCertificateRequest } from './index.ts'
import { aRequest, openssl, opensslRequest, subjectOfMember } from './test/requests.ts'

const EAST = '/O=system:open-cluster-management:east/CN=system:open-cluster-management:east:one'
const derOf = (pem: string): Buffer => Buffer.from(pem.replace(/-----[^-]+-----|\s/g, ''), 'base64')
const pemOf = (der: Buffer): string =>
  `-----BEGIN CERTIFICATE REQUEST-----\n${der.toString('base64')}\n-----END CERTIFICATE REQUEST-----\n`

/** The blocks that a lenient reader could find, wherever they begin. */
const anyBlocks = (text: string): Buffer[] =>
  [...text.matchAll(/-----BEGIN CERTIFICATE REQUEST-----([^-]*)-----END CERTIFICATE REQUEST-----/g)].map(
    ([, body = '']) => Buffer.from(body, 'base64'),
  )

describe('a certificate request', () => {
  const sorts: readonly [what: string, key: string[], digest: string][] = [
    ['P-256', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-256'], '-sha256'],
    ['P-384', ['ec', '-pkeyopt', 'ec_paramgen_curve:P-384'], '-sha384'],
    ['RSA 2048', ['rsa:2048'], '-sha512'],
    ['Ed25519', ['ed25519'], '-sha256'],
  ]
  it.each(sorts)('of a key %s is read as openssl wrote it', (_, key, digest) => {
    const pem = opensslRequest(EAST, { key, digest })
    const { subject, extensions, keySha256, spki } = parseCertificateRequest(pem)
    expect(subject).toEqual([
      { oid: '2.5.4.10', value: 'system:open-cluster-management:east' },
      { oid: '2.5.4.3', value: 'system:open-cluster-management:east:one' },
    ])
    expect(extensions).toEqual([])
    expect(keySha256).toMatch(/^[0-9a-f]{64}$/)
    const publicKey = openssl(['req', '-in', 'request.pem', '-noout', '-pubkey'], { 'request.pem': pem })
    expect(derOf(publicKey)).toEqual(spki)
  })

  it('is found behind the words that openssl -text puts before it', () => {
    const pem = openssl(['req', '-in', 'request.pem', '-text'], { 'request.pem': opensslRequest(EAST) })
    expect(pem).toMatch(/^Certificate Request:/)
    expect(parseCertificateRequest(pem).subject).toHaveLength(2)
  })

  it('shows the extensions it asks for, and words beyond ASCII', () => {
    const more = ['-addext', 'subjectAltName=DNS:hub.example', '-addext', 'basicConstraints=critical,CA:TRUE']
    const { extensions, subject } = parseCertificateRequest(opensslRequest('/CN=Zoë/OU=Büro+OU=zwei', { more }))
    expect(extensions).toEqual(['2.5.29.17', '2.5.29.19'])
    expect(subject.map(({ value }) => value).sort()).toEqual(['Büro', 'Zoë', 'zwei'])
  })

  it.each([
    ['nothing', ''],
    ['no PEM', 'hello'],
    ['a certificate', '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n'],
    ['a block without an end', '-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n'],
  ])('is not %s', (_, text) => {
    expect(() => parseCertificateRequest(text)).toThrow('PEM block type must be CERTIFICATE REQUEST')
  })

  it('is the only block that any reader could find', async () => {
    const [own, other] = [(await aRequest()).pem, (await aRequest(subjectOfMember('west', 'a'))).pem]
    const block = own.trimEnd()
    const [begin = '', ...lines] = block.split('\n')
    const end = lines.pop() ?? ''
    expect(parseCertificateRequest(block).subject).toHaveLength(2)
    expect(parseCertificateRequest(`${block.replaceAll('\n', '\r\n')}\r\n\n`).subject).toHaveLength(2)
    for (const text of [
      `x${own}${other}`,
      ` ${own}${other}`,
      `${block}x\n${other}`,
      `${begin}${lines.join('\n')}\n${end}\n${other}`,
      `${begin}\n${lines.join('')}${end}\n${other}`,
      `${own}${other}`,
      `${own}x`,
      `${other.replace('-----END', '----END')}${own}`,
      `${begin}\n${own}`,
      `${begin}\nProc-Type: 4,ENCRYPTED\n\n${lines.join('\n')}\n${end}\n`,
      `${begin}\n${lines.join(' \n')}\n${end}\n`,
      `${begin}\n!!!!\n${end}\n`,
      `${begin}\n${lines.join('\n')}==\n${end}\n`,
    ])
      expect(() => parseCertificateRequest(text), text).toThrow(CertificateRequestError)
  })

  it('is read only where the most lenient reader finds the same block and no other, whatever is put around it', async () => {
    const [own, other] = [(await aRequest()).pem, (await aRequest(subjectOfMember('west', 'a'))).pem]
    const piece = fc.constantFrom(
      ...[
        own,
        other,
        own.trimEnd(),
        other.trimEnd(),
        '-----BEGIN CERTIFICATE REQUEST-----',
        '-----',
        'x',
        ' ',
        '\n',
        '\r',
      ],
      ...[
        '\t',
        'a: b\n',
        '-----END CERTIFICATE REQUEST-----',
        '-----BEGIN X-----\n',
        '-----END X-----\n',
        '\u000b',
        '\0',
      ],
    )
    fc.assert(
      fc.property(fc.array(piece, { minLength: 1, maxLength: 6 }), (pieces) => {
        const text = pieces.join('')
        let read: string
        try {
          read = parseCertificateRequest(text).spki.toString('hex')
        } catch {
          return
        }
        const [first, ...more] = anyBlocks(text)
        expect(more).toEqual([])
        expect(first?.toString('hex')).toContain(read)
      }),
      { numRuns: 2_000 },
    )
  })

  it('of more than 16 KiB is refused before it is read', () => {
    const words = Array.from({ length: 600 }, (_, n) => `/OU=${'x'.repeat(40)}${n}`).join('')
    expect(() => parseCertificateRequest(opensslRequest(`${words}${EAST}`))).toThrow(
      /may have 16384 bytes, this one has \d+/,
    )
  })

  it('signed with a digest that is broken, or on a curve nobody knows, is refused', () => {
    expect(() => parseCertificateRequest(opensslRequest(EAST, { digest: '-sha1' }))).toThrow(
      /signed by an algorithm that is not taken here \(1\.2\.840\.10045\.4\.1\)/,
    )
  })

  it('is nobody else’s: no bit of it can be changed, and no bytes be put behind it', async () => {
    const der = derOf((await aRequest()).pem)
    fc.assert(
      fc.property(fc.nat(der.length - 1), fc.integer({ min: 1, max: 255 }), (at, by) => {
        const altered = Buffer.from(der)
        altered[at] = (altered[at] ?? 0) ^ by
        expect(() => parseCertificateRequest(pemOf(altered))).toThrow(CertificateRequestError)
      }),
      { numRuns: 500 },
    )
    for (const more of [Buffer.of(0), Buffer.of(5, 0)])
      expect(() => parseCertificateRequest(pemOf(Buffer.concat([der, more])))).toThrow(CertificateRequestError)
    for (let length = 0; length < der.length; length += 7)
      expect(() => parseCertificateRequest(pemOf(der.subarray(0, length)))).toThrow(CertificateRequestError)
  })

  it('made of anything is read or refused, and never anything else', () => {
    fc.assert(
      fc.property(fc.oneof(fc.uint8Array({ maxLength: 400 }), fc.constant(new Uint8Array())), (bytes) => {
        expect(() => parseCertificateRequest(pemOf(Buffer.from(bytes)))).toThrow(CertificateRequestError)
      }),
    )
  })
})
