import { createCipheriv, createDecipheriv, createHash, randomBytes, sign, X509Certificate } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { silentLogger } from '#runtime'
import { ManualClock } from '../controller/testing/manual-clock.ts'
import {
  Authority,
  AuthorityChangedError,
  type AuthorityOptions,
  type AuthorityStore,
  folderStore,
  isSignedByHolder,
  judgeRequest,
  type RecognisedRequest,
  type Sealer,
  type SigningRequest,
} from './index.ts'
import { aRequest, openssl, opensslRequest, signingRequest, subjectOfMember } from './test/requests.ts'

const SIGNER = 'kubernetes.io/kube-apiserver-client'
const DAY_MS = 86_400_000
const START = Date.UTC(2026, 0, 1)

function aFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'authority-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  return dir
}

const openIn = (dir: string, more: Partial<AuthorityOptions> = {}) =>
  Authority.open({ store: folderStore(dir), clock: new ManualClock(START), ...more })

function recognised(request: SigningRequest): RecognisedRequest {
  const judged = judgeRequest(request, [SIGNER])
  if (judged.kind !== 'recognised') throw new Error(JSON.stringify(judged))
  return judged
}

async function aMember(
  authority: Authority,
  { cluster = 'east', agent = 'one', seconds = undefined as number | undefined } = {},
) {
  const { pem, key } = await aRequest(subjectOfMember(cluster, agent))
  const spec = seconds === undefined ? {} : { expirationSeconds: seconds }
  const request = signingRequest(pem, spec, { 'open-cluster-management.io/cluster-name': cluster })
  const issued = await authority.signClient(recognised(request))
  return { ...issued, key, certificate: new X509Certificate(issued.pem) }
}

/** Seals with a key of its own. */
function aSealer(): Sealer {
  const key = randomBytes(32)
  return {
    async seal(plain) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      const text = Buffer.concat([cipher.update(plain), cipher.final()])
      return Buffer.concat([nonce, cipher.getAuthTag(), text])
    },
    async open(sealed) {
      const bytes = Buffer.from(sealed)
      const cipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
      cipher.setAuthTag(bytes.subarray(12, 28))
      return Buffer.concat([cipher.update(bytes.subarray(28)), cipher.final()])
    },
  }
}

const contents = (dir: string): string =>
  readdirSync(dir)
    .map((name) => readFileSync(join(dir, name), 'utf8'))
    .join('\n')

describe('the hub’s CA', () => {
  it('is made once, stays the same over restarts, and is for its owner’s eyes alone', async () => {
    const dir = aFolder()
    const [first] = (await openIn(dir)).roots()
    const [again] = (await openIn(dir)).roots()
    expect(again).toEqual(first)
    expect(first).toMatchObject({ state: 'active' })
    for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600)
    const text = openssl(['x509', '-in', 'ca.pem', '-text'], { 'ca.pem': first?.pem ?? '' })
    expect(text).toMatch(/CA:TRUE, pathlen:0/)
    expect(text).toMatch(/Certificate Sign, CRL Sign/)
    expect(text).toMatch(/NIST CURVE: P-256/)
    expect((first?.endsMs ?? 0) - START).toBe(3650 * DAY_MS)
  })

  it('says of the first that it is made, and only of a later one that it takes over', async () => {
    const said: string[] = []
    const info = (_: object, text?: string) => void said.push(text ?? '')
    const authority = await openIn(aFolder(), { logger: { ...silentLogger, info } })
    expect(said).toEqual(['the CA that signs members is made: none is kept here'])
    await authority.rotate()
    expect(said.at(-1)).toMatch(/^a new CA takes over from the hub's former one/)
  })

  it.each([
    ['hours behind', 0],
    ['right, where its own was ten years ahead when it was made', 3652 * DAY_MS],
    ['right, where its own was ten years behind', -3652 * DAY_MS],
  ])('is believed by a machine whose clock is %s', async (_, aheadMs) => {
    const clock = new ManualClock(Date.now() + aheadMs)
    const [root] = (await openIn(aFolder(), { clock })).roots()
    expect(Date.parse(new X509Certificate(root?.pem ?? '').validFrom)).toBeLessThan(Date.now() - 12 * 3_600_000)
  })

  it('signs what openssl verifies: the member’s name, its key, client authentication, nothing else', async () => {
    const authority = await openIn(aFolder(), { clock: new ManualClock(Date.now()) })
    const { pem, notAfterMs, serial } = await aMember(authority)
    const verified = openssl(['x509', '-in', 'member.pem', '-text'], { 'member.pem': pem })
    expect(verified).toMatch(
      /Subject: O = system:open-cluster-management:east, CN = system:open-cluster-management:east:one\n/,
    )
    expect(verified).toMatch(/TLS Web Client Authentication\n/)
    expect(verified).toMatch(/CA:FALSE/)
    expect(verified).toMatch(/Digital Signature\n/)
    expect(verified).not.toMatch(/Alternative Name|Server Authentication/)
    const certificate = new X509Certificate(pem)
    expect(certificate.verify(new X509Certificate(authority.pem).publicKey)).toBe(true)
    expect(certificate.serialNumber.toLowerCase()).toBe(serial)
    expect(Date.parse(certificate.validTo)).toBe(notAfterMs)
    expect((notAfterMs - Date.now()) / DAY_MS).toBeCloseTo(30, 1)
    expect(Date.now() - Date.parse(certificate.validFrom)).toBeGreaterThanOrEqual(5 * 60_000)
  })

  it('signs keys of every sort that is allowed, each with a serial of its own', async () => {
    const authority = await openIn(aFolder())
    const serials = new Set<string>()
    for (const key of [['rsa:2048'], ['ed25519'], ['ec', '-pkeyopt', 'ec_paramgen_curve:P-521']]) {
      const subject = '/O=system:open-cluster-management:east/CN=system:open-cluster-management:east:one'
      const { pem, serial } = await authority.signClient(recognised(signingRequest(opensslRequest(subject, { key }))))
      expect(authority.memberOf(new X509Certificate(pem))).toMatchObject({ kind: 'valid', member: { cluster: 'east' } })
      serials.add(serial)
    }
    expect(serials.size).toBe(3)
  })

  it.each([
    [undefined, 30 * 86_400],
    [7200, 7200],
    [600, 600],
    [10, 600],
    [400 * 86_400, 30 * 86_400],
  ])('asked for a life of %s s gives one of %i s', async (seconds, life) => {
    const authority = await openIn(aFolder())
    const { notBeforeMs, notAfterMs } = await aMember(authority, { seconds })
    expect(START - notBeforeMs).toBe(5 * 60_000)
    expect(notAfterMs - START).toBe(life * 1000 - (life < 8 * 3600 ? 0 : 5 * 60_000))
  })

  it('gives its place to a new one, and is trusted until all it signed has ended', async () => {
    const dir = aFolder()
    const clock = new ManualClock(START)
    const authority = await openIn(dir, { clock })
    const [former] = authority.roots()
    const { certificate } = await aMember(authority)
    let changes = 0
    authority.onChange(() => changes++)
    const next = await authority.rotate()
    expect(changes).toBe(1)
    expect(authority.roots().map(({ id, state }) => [id, state])).toEqual([
      [former?.id, 'former'],
      [next.id, 'active'],
    ])
    expect(authority.memberOf(certificate)).toMatchObject({ kind: 'valid' })
    expect((await aMember(authority)).rootId).toBe(next.id)
    expect(contents(dir).match(/BEGIN PRIVATE KEY/g)).toHaveLength(2) // the new one's, in both copies
    const restarted = await openIn(dir, { clock })
    expect(restarted.roots()).toHaveLength(2)
    expect(restarted.memberOf(certificate)).toMatchObject({ kind: 'valid' })
    await clock.advance(32 * DAY_MS)
    expect(restarted.roots().map(({ id }) => id)).toEqual([next.id])
    expect(restarted.memberOf(certificate)).toMatchObject({ kind: 'ended' })
    for (let n = 0; n < 16; n++) await restarted.rotate()
    expect(contents(dir)).not.toContain(former?.id)
  })

  it('goes on under a clock that was wrong by years, either way', async () => {
    const dir = aFolder()
    const member = await aMember(await openIn(dir))
    const later = await openIn(dir, { clock: new ManualClock(START + 11 * 365 * DAY_MS) })
    await expect(aMember(later)).rejects.toThrow(/has ended: rotate it/)
    expect((await openIn(dir)).accepts(member.certificate)).toBe(true)
    const earlier = await openIn(dir, { clock: new ManualClock(START - 10 * 365 * DAY_MS) })
    expect(earlier.memberOf(member.certificate)).toMatchObject({
      kind: 'refused',
      message: expect.stringMatching(/counts from/),
    })
    await aMember(earlier)
    const again = await openIn(dir)
    expect(again.roots()).toHaveLength(1)
    expect(again.accepts(member.certificate)).toBe(true)
    expect(again.accepts((await aMember(again)).certificate)).toBe(true)
  })

  it('writes once however many certificates are asked for at once', async () => {
    let writes = 0
    const store = folderStore(aFolder())
    const counting: AuthorityStore = {
      ...store,
      write: (...args) => {
        writes++
        return store.write(...args)
      },
    }
    const authority = await Authority.open({ store: counting, clock: new ManualClock(START) })
    const opened = writes
    await Promise.all(Array.from({ length: 50 }, () => aMember(authority)))
    expect(writes - opened).toBe(1)
  })

  it('that follows is trusted before it signs, as long as others need to hear of it', async () => {
    const clock = new ManualClock(START)
    const authority = await openIn(aFolder(), { clock })
    const [first] = authority.roots()
    const next = await authority.rotate({ activeAfterMs: 60_000 })
    expect(next.state).toBe('next')
    expect((await aMember(authority)).rootId).toBe(first?.id)
    await clock.advance(60_000)
    expect((await aMember(authority)).rootId).toBe(next.id)
  })

  it('is ended by hand, but not while it signs', async () => {
    const authority = await openIn(aFolder())
    const [former] = authority.roots()
    const { certificate } = await aMember(authority)
    await expect(authority.end(former?.id ?? '')).rejects.toThrow(/rotate it first/)
    await authority.rotate()
    await authority.end(former?.id ?? '')
    expect(authority.memberOf(certificate)).toEqual({
      kind: 'refused',
      message: 'the certificate was signed by no CA of this hub',
    })
    await expect(authority.end('none')).rejects.toThrow(/no CA none/)
  })

  it('gives way by itself before certificates would have to end with it, once, however many ask', async () => {
    const clock = new ManualClock(START)
    const authority = await openIn(aFolder(), { clock, authorityLifeMs: 100 * DAY_MS })
    const before = await aMember(authority)
    await clock.advance(29 * DAY_MS)
    expect((await aMember(authority)).rootId).toBe(before.rootId)
    await clock.advance(16 * DAY_MS)
    const issued = await Promise.all(Array.from({ length: 8 }, () => aMember(authority)))
    expect(authority.roots()).toHaveLength(2)
    for (const { notAfterMs } of issued) expect(notAfterMs).toBe(START + 75 * DAY_MS - 5 * 60_000)
  })

  it('knows whose certificates it cannot have signed, where it is another one as the file was lost', async () => {
    const dir = aFolder()
    const authority = await openIn(dir)
    const old = await aMember(authority)
    const lifeOf = ({ rootId, notBeforeMs }: typeof old) => ({ issuer: rootId.slice(0, 16), from: notBeforeMs })
    const lacks = (by: Authority, of: typeof old) => {
      const { issuer, from } = lifeOf(of)
      return [by.lacksIssuerOf({ issuer, from }), by.lacksIssuerOf({ from })]
    }
    expect(lacks(authority, old)).toEqual([false, false])
    await authority.rotate()
    expect(lacks(await openIn(dir), old)).toEqual([false, false])

    const lost = `${dir}-lost`
    renameSync(dir, lost)
    onTestFinished(() => rmSync(lost, { recursive: true, force: true }))
    const other = await openIn(dir, { clock: new ManualClock(START + DAY_MS) })
    expect(lacks(other, old)).toEqual([true, true])
    const anew = await aMember(other)
    expect(lacks(other, anew)).toEqual([false, false])
    // One that was made by a program that did not note when may have signed whatever nobody noted the signer of.
    for (const name of readdirSync(dir)) {
      const [text = ''] = readFileSync(join(dir, name), 'utf8').split('\n')
      const document = JSON.parse(text) as { authorities: { madeMs?: number }[] }
      for (const one of document.authorities) delete one.madeMs
      const changed = JSON.stringify(document)
      writeFileSync(join(dir, name), `${changed}\n${createHash('sha256').update(changed).digest('hex')}\n`)
    }
    expect(lacks(await openIn(dir), old)).toEqual([true, false])
    expect(lacks(await openIn(lost), old)).toEqual([false, false])
  })

  it('makes a copy anew that was harmed or is gone, and says which', async () => {
    const dir = aFolder()
    const authority = await openIn(dir)
    const one = await aMember(authority)
    const [first, second] = [join(dir, 'authority.json'), join(dir, 'authority.copy.json')]
    const whole = readFileSync(first, 'utf8')
    for (const [path, harm] of [
      [first, () => writeFileSync(first, whole.replace('{', '['))],
      [second, () => rmSync(second)],
    ] as const) {
      harm()
      const harmed: string[] = []
      const again = await openIn(dir, { store: folderStore(dir, (path) => harmed.push(path)) })
      expect(again.accepts(one.certificate)).toBe(true)
      expect(harmed).toEqual([path])
      expect([first, second].map((path) => readFileSync(path, 'utf8'))).toEqual([whole, whole])
    }
  })

  it('is written again from memory where its files were deleted or harmed while it runs, and says where that cannot be', async () => {
    const dir = join(aFolder(), 'authority')
    const said: string[] = []
    const say = (_: unknown, text: string) => void said.push(text)
    const logger = { ...silentLogger, info: say, warn: say, error: say } as unknown as typeof silentLogger
    const authority = await openIn(dir, { logger })
    const one = await aMember(authority)
    const names = ['authority.json', 'authority.copy.json']
    const kept = () => names.map((name) => readFileSync(join(dir, name), 'utf8'))
    const whole = kept()
    await authority.keep()
    for (const harm of [
      () => rmSync(dir, { recursive: true }),
      () => names.map((name) => rmSync(join(dir, name))),
      () => names.map((name) => writeFileSync(join(dir, name), 'harmed')),
      () => rmSync(join(dir, 'authority.json')),
    ]) {
      said.length = 0
      harm()
      await authority.keep()
      expect(kept()).toEqual(whole)
      if (said.length > 0)
        expect(said).toEqual([expect.stringMatching(/gone or harmed where it is kept: it is written/)])
    }
    rmSync(dir, { recursive: true })
    writeFileSync(dir, 'no folder')
    said.length = 0
    let changes = 0
    authority.onChange(() => changes++)
    for (let look = 0; look < 2; look++) await authority.keep()
    expect(authority.fault).toMatch(/is not kept any more, and cannot be written again: ENOTDIR.*the next start/)
    expect(said).toEqual([authority.fault])
    expect(authority.accepts(one.certificate)).toBe(true)
    rmSync(dir)
    await authority.keep()
    expect([authority.fault, changes]).toEqual([undefined, 2])
    expect((await openIn(dir)).accepts(one.certificate)).toBe(true)
  })

  it('follows a decision once, however often it is told of it, also years later and after a restart', async () => {
    const dir = aFolder()
    const clock = new ManualClock(START)
    const authority = await openIn(dir, { clock, authorityLifeMs: 4_000 * DAY_MS })
    const decidedMs = START - 3_600_000
    const one = await aMember(authority)
    await authority.revoke({ cluster: 'east', decidedMs })
    expect(authority.accepts(one.certificate)).toBe(false)
    await clock.advance(1_000 * DAY_MS)
    await authority.revoke({ cluster: 'west' })
    const next = await aMember(authority)
    await clock.advance(1000)
    const restarted = await openIn(dir, { clock, authorityLifeMs: 4_000 * DAY_MS })
    await restarted.revoke({ cluster: 'east', decidedMs })
    expect(restarted.accepts(next.certificate)).toBe(true)
    await restarted.revoke({ cluster: 'east', decidedMs: decidedMs + 1 })
    expect(restarted.accepts(next.certificate)).toBe(false)
  })

  it('revokes what a cluster or an agent was given so far, at once and over a restart; what follows counts', async () => {
    const dir = aFolder()
    const clock = new ManualClock(START)
    const authority = await openIn(dir, { clock })
    const [one, two, west] = [
      await aMember(authority),
      await aMember(authority, { agent: 'two' }),
      await aMember(authority, { cluster: 'west' }),
    ]
    await authority.revoke({ cluster: 'east', agent: 'one' })
    expect([one, two, west].map(({ certificate }) => authority.accepts(certificate))).toEqual([false, true, true])
    expect(authority.memberOf(one.certificate)).toEqual({
      kind: 'refused',
      message: 'the certificate of cluster east was revoked',
    })
    await authority.revoke({ cluster: 'east' })
    const next = await aMember(authority) // in the very second of the revocation
    const restarted = await openIn(dir, { clock })
    for (const each of [authority, restarted])
      expect([one, two, west].map(({ certificate }) => each.accepts(certificate))).toEqual([false, false, true])
    await clock.advance(1000)
    expect(restarted.memberOf(next.certificate)).toMatchObject({ kind: 'valid' })
  })

  it('lets an ended certificate ask for the next one for 30 days, and for nothing else', async () => {
    const clock = new ManualClock(START)
    const authority = await openIn(aFolder(), { clock })
    const { certificate, key, notAfterMs } = await aMember(authority)
    await clock.advance(notAfterMs - START)
    expect(authority.memberOf(certificate)).toMatchObject({ kind: 'valid' })
    await clock.advance(1)
    expect(authority.memberOf(certificate)).toMatchObject({ kind: 'ended', member: { cluster: 'east', agent: 'one' } })
    expect(authority.accepts(certificate)).toBe(false)
    const message = Buffer.from('the next request')
    expect(isSignedByHolder(certificate, message, sign('sha256', message, key))).toBe(true)
    expect(isSignedByHolder(certificate, Buffer.from('another'), sign('sha256', message, key))).toBe(false)
    expect(isSignedByHolder(certificate, message, Buffer.alloc(3))).toBe(false)
    await clock.advance(30 * DAY_MS)
    expect(authority.memberOf(certificate)).toEqual({
      kind: 'refused',
      message: expect.stringMatching(/ended at .*: join again/),
    })
  })

  it('knows no certificate of another CA, none before its time, and none of a CA’s own', async () => {
    const clock = new ManualClock(START)
    const [authority, stranger] = [await openIn(aFolder(), { clock }), await openIn(aFolder(), { clock })]
    const { certificate } = await aMember(stranger)
    expect(authority.memberOf(certificate)).toMatchObject({
      kind: 'refused',
      message: expect.stringMatching(/no CA of this hub/),
    })
    expect(authority.memberOf(new X509Certificate(authority.pem))).toMatchObject({ kind: 'refused' })
    const early = await openIn(aFolder(), { clock: new ManualClock(START - 10 * 365 * DAY_MS) })
    expect(early.memberOf((await aMember(early)).certificate)).toMatchObject({ kind: 'valid' })
  })

  it('keeps its key sealed where it is given a sealer, seals what was in the clear, and opens for no other', async () => {
    const dir = aFolder()
    const sealer = aSealer()
    const [root] = (await openIn(dir)).roots()
    expect(contents(dir)).toContain('PRIVATE KEY')
    const authority = await openIn(dir, { sealer })
    expect(authority.roots()[0]?.id).toBe(root?.id)
    expect(contents(dir)).not.toContain('PRIVATE KEY')
    await authority.rotate()
    expect(contents(dir)).not.toContain('PRIVATE KEY')
    await aMember(await openIn(dir, { sealer }))
    const next = aSealer()
    const both: Sealer = { ...next, open: (sealed) => sealer.open(sealed), isCurrent: () => false }
    await openIn(dir, { sealer: both })
    await aMember(await openIn(dir, { sealer: { ...next, isCurrent: () => true } }))
    await expect(openIn(dir, { sealer: aSealer() })).rejects.toThrow(/encrypted with another encryption key/)
    await expect(openIn(dir)).rejects.toThrow(/no encryption key is configured/)
  })

  const givenPair = (name: string) => {
    const key = openssl(['genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:P-384'])
    const more = [
      '-days',
      '3650',
      '-addext',
      'basicConstraints=critical,CA:TRUE',
      '-addext',
      'keyUsage=critical,keyCertSign',
    ]
    const config = '[req]\ndistinguished_name = dn\n[dn]\n'
    const cert = openssl(
      ['req', '-x509', '-new', '-config', 'cnf', '-key', 'key.pem', '-subj', `/CN=${name}`, ...more],
      { 'key.pem': key, cnf: config },
    )
    return { cert, key }
  }

  it('may be given: it signs, its key is kept nowhere, and another one that is given later takes over from it', async () => {
    const dir = aFolder()
    const clock = new ManualClock(Date.now())
    const [first, second] = [givenPair('first'), givenPair('second')]
    const before = await aMember(await openIn(dir, { given: first, clock }))
    expect(contents(dir)).not.toContain('PRIVATE KEY')
    await expect((await openIn(dir, { given: first, clock })).rotate()).rejects.toThrow(/given by files/)
    const authority = await openIn(dir, { given: second, clock })
    expect(authority.roots().map(({ state }) => state)).toEqual(['former', 'active'])
    const after = await aMember(authority)
    for (const { certificate } of [before, after]) expect(authority.accepts(certificate)).toBe(true)
    expect(after.certificate.checkIssued(new X509Certificate(second.cert))).toBe(true)
    const own = await openIn(dir, { clock })
    expect(own.roots()).toHaveLength(3)
    expect(own.accepts((await aMember(own)).certificate)).toBe(true)
    expect(own.accepts(after.certificate)).toBe(true)
  })

  it('is refused where what is given does not belong together, is no CA, or is nothing', async () => {
    const [one, two] = [givenPair('one'), givenPair('two')]
    const leaf = await aMember(await openIn(aFolder()))
    const given = (cert: string, key: string) => openIn(aFolder(), { given: { cert, key } })
    await expect(given(one.cert, two.key)).rejects.toThrow(/do not belong together/)
    await expect(given(leaf.pem, leaf.key.export({ type: 'pkcs8', format: 'pem' }).toString())).rejects.toThrow(
      /not that of a CA/,
    )
    await expect(given('nothing', one.key)).rejects.toThrow(/no PEM of a certificate/)
    await expect(given(one.cert, 'nothing')).rejects.toThrow(/no PEM of a private key/)
  })

  it('survives one harmed copy of what is kept, and refuses to begin anew by itself where both are', async () => {
    const dir = aFolder()
    const [root] = (await openIn(dir)).roots()
    const [one = '', two = ''] = readdirSync(dir).sort()
    const whole = readFileSync(join(dir, one))
    for (const harmed of ['', whole.subarray(0, 100), whole.toString().replace('"version":1', '"version":2')]) {
      writeFileSync(join(dir, one), harmed)
      expect((await openIn(dir)).roots()[0]?.id).toBe(root?.id)
      writeFileSync(join(dir, one), whole)
      writeFileSync(join(dir, two), harmed)
      expect((await openIn(dir)).roots()[0]?.id).toBe(root?.id)
      for (const name of [one, two]) writeFileSync(join(dir, name), harmed)
      await expect(openIn(dir)).rejects.toThrow(/is damaged: restore the folder from a backup.*join again/)
      writeFileSync(join(dir, one), whole)
      writeFileSync(join(dir, two), whole)
    }
  })

  it('takes what may not be read for no damage', async () => {
    const dir = aFolder()
    const [root] = (await openIn(dir)).roots()
    const [one = '', two = ''] = readdirSync(dir).sort()
    // As a file of another user is: the system refuses to say what it holds.
    const refusing = (name: string) => {
      renameSync(join(dir, name), join(dir, `${name}.kept`))
      mkdirSync(join(dir, name))
    }
    refusing(one)
    refusing(two)
    await expect(openIn(dir)).rejects.toMatchObject({ code: 'EISDIR' })
    rmdirSync(join(dir, two))
    renameSync(join(dir, `${two}.kept`), join(dir, two))
    rmdirSync(join(dir, one))
    expect((await openIn(dir)).roots()[0]?.id).toBe(root?.id)
  })

  it('kept where several processes write: nobody’s change is lost, and each hears of the others’', async () => {
    let kept: { text: string; version: string } | undefined
    const store: AuthorityStore = {
      read: async () => kept,
      async write(text, over) {
        await Promise.resolve()
        if (over !== kept?.version) throw new AuthorityChangedError()
        kept = { text, version: createHash('sha256').update(text).digest('hex') }
        return kept.version
      },
      mend: () => Promise.reject(new Error('nothing is harmed')),
    }
    const clock = new ManualClock(START)
    const open = () => Authority.open({ store, clock })
    const [a, b] = [await open(), await open()]
    const member = await aMember(a)
    await Promise.all([a.rotate(), b.rotate(), a.revoke({ cluster: 'west' }), b.revoke({ cluster: 'north' })])
    await Promise.all([a.refresh(), b.refresh()])
    expect(a.roots()).toEqual(b.roots())
    expect(a.roots()).toHaveLength(3)
    expect(b.accepts(member.certificate)).toBe(true)
    expect(JSON.parse(kept?.text ?? '').revocations).toHaveLength(2)
  })
})
