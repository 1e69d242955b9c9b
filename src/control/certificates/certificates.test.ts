import { execFile as execFileOf, spawnSync } from 'node:child_process'
import { randomUUID, X509Certificate } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ApiListener, ApiServer, listenApi } from '#apiserver'
import { Authority, AuthorityUnusableError, folderStore, judgeRequest } from '#authority'
import { Manager } from '#controller'
import { type ClusterAccess, createKubeClient, type KubeClient, secrets, whole } from '#kube'
import { silentLogger } from '#runtime'
import { noRealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import {
  aRequest,
  opensslRequest,
  signerOf,
  signingRequest,
  subjectOfMember,
} from '../../platform/authority/test/requests.ts'
import {
  AUTHORITY_CONFIG_MAP,
  type AuthorityAct,
  certificateReconcilers,
  type SignedRequest,
  STREAM_SIGNER,
  sayUnusable,
  secretStore,
  unusableIn,
} from './index.ts'
import { configMaps } from './published.ts'
import { type CertificateRequestObject, certificateRequests } from './signing.ts'

const API_SIGNER = 'kubernetes.io/kube-apiserver-client'
const NAMESPACE = 'default'
const CONFIG_MAP = { namespace: NAMESPACE, name: AUTHORITY_CONFIG_MAP }

interface Hub {
  readonly access: ClusterAccess
  readonly listener?: ApiListener
  stop(): Promise<void>
}

async function anEmbeddedHub(authority: Authority): Promise<Hub> {
  const server = await ApiServer.open({ storage: { kind: 'memory' }, defaultRoles: true })
  const token = randomUUID()
  const listener = await listenApi({
    tokens: [{ token, user: 'hub', groups: ['system:masters'] }],
    mounts: new Map([['', server]]),
    clientAuthorities: authority,
  })
  return {
    access: { server: listener.url, ca: listener.caPem, verifyTls: true, credentials: { kind: 'token', token } },
    listener,
    async stop() {
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

async function aRealHub(): Promise<Hub> {
  const server = await startRealApiServer()
  if (!server) throw new Error('no real kube-apiserver')
  return { access: server.access, stop: () => server.stop() }
}

const missing = process.env.CI_REQUIRE_ALL === '1' ? undefined : noRealApiServer()
const hubs = [
  { name: 'the embedded API', skip: undefined, signers: [API_SIGNER, STREAM_SIGNER], start: anEmbeddedHub },
  {
    name: `a real kube-apiserver${missing ? ` (skipped: ${missing})` : ''}`,
    skip: missing,
    signers: [STREAM_SIGNER],
    start: aRealHub,
  },
]

describe.each(hubs)('certificates of members on $name', ({ skip, signers, start }) => {
  describe.skipIf(skip)('are signed', () => {
    let dir: string
    let authority: Authority
    let hub: Hub
    let kube: KubeClient
    let manager: Manager
    const signed: SignedRequest[] = []
    const acts: AuthorityAct[] = []
    beforeAll(async () => {
      dir = mkdtempSync(join(tmpdir(), 'certificates-'))
      authority = await Authority.open({ store: folderStore(dir) })
      hub = await start(authority)
      kube = createKubeClient(hub.access)
      const onSigned = (request: SignedRequest) => void signed.push(request)
      const onAct = (act: AuthorityAct) => void acts.push(act)
      const parts = { hub: kube, namespace: NAMESPACE, authority, signers, onSigned, onAct, logger: silentLogger }
      manager = new Manager({ controllers: certificateReconcilers(parts), logger: silentLogger })
      await manager.start()
    })
    afterAll(async () => {
      await manager?.stop()
      await kube?.[Symbol.asyncDispose]()
      await hub?.stop()
      rmSync(dir, { recursive: true, force: true })
    })

    let count = 0
    async function asked(
      pem: string,
      {
        cluster = 'east',
        signerName = STREAM_SIGNER,
        ...spec
      }: { cluster?: string; signerName?: string; expirationSeconds?: number } = {},
    ): Promise<string> {
      const { metadata, spec: whole } = signingRequest(pem, { ...spec, signerName })
      const name = `${cluster}-${++count}`
      const labels = { ...metadata.labels, 'open-cluster-management.io/cluster-name': cluster }
      const { username: _, groups: __, ...given } = whole ?? {}
      await kube.create(certificateRequests, { metadata: { name, labels }, spec: given })
      return name
    }
    const get = (name: string): Promise<CertificateRequestObject | undefined> => kube.get(certificateRequests, { name })
    const conditionsOf = async (name: string) => (await get(name))?.status?.conditions ?? []
    async function approve(name: string, type = 'Approved'): Promise<void> {
      const object = await get(name)
      const conditions = [...(object?.status?.conditions ?? []), { type, status: 'True', reason: 'Test', message: '' }]
      await kube.request('PUT', `/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}/approval`, {
        body: { ...object, status: { conditions } },
      })
    }
    const certificateOf = async (name: string): Promise<X509Certificate> => {
      await expect.poll(async () => (await get(name))?.status?.certificate).toBeTruthy()
      return new X509Certificate(Buffer.from((await get(name))?.status?.certificate ?? '', 'base64'))
    }

    it('once they are approved, by the hub’s CA, and told of', async () => {
      const { pem, key } = await aRequest()
      const name = await asked(pem, { expirationSeconds: 7200 })
      const waiting = await asked((await aRequest()).pem)
      await approve(name)
      const certificate = await certificateOf(name)
      expect(certificate.checkPrivateKey(key)).toBe(true)
      expect(authority.memberOf(certificate)).toMatchObject({
        kind: 'valid',
        member: { cluster: 'east', agent: 'one' },
      })
      expect(Date.parse(certificate.validTo) - Date.now()).toBeLessThanOrEqual(7_200_000)
      await expect
        .poll(() => signed.find((one) => one.name === name))
        .toMatchObject({
          result: { kind: 'signed', member: { cluster: 'east' }, serial: certificate.serialNumber.toLowerCase() },
        })
      expect((await get(waiting))?.status?.certificate).toBeUndefined()
    })

    it.each<[what: string, pem: () => Promise<string> | string, sentence: RegExp]>([
      [
        'with alternative names',
        () =>
          opensslRequest('/O=system:open-cluster-management:east/CN=system:open-cluster-management:east:one', {
            more: ['-addext', 'subjectAltName=DNS:hub'],
          }),
        /alternative names/,
      ],
      [
        'for the group of another cluster',
        () => opensslRequest('/O=system:open-cluster-management:west/CN=system:open-cluster-management:east:one'),
        /must be exactly/,
      ],
      [
        'for another cluster than its label says',
        async () => (await aRequest(subjectOfMember('west', 'one'))).pem,
        /names cluster "west", the label .* names "east"/,
      ],
    ])('not, but marked as failed with a sentence, %s, whoever approved it', async (_, pem, sentence) => {
      const name = await asked(await pem())
      await approve(name)
      await expect
        .poll(() => conditionsOf(name))
        .toContainEqual(
          expect.objectContaining({
            type: 'Failed',
            status: 'True',
            reason: 'SignerValidationFailure',
            message: expect.stringMatching(sentence),
          }),
        )
      expect((await get(name))?.status?.certificate).toBeUndefined()
      await expect.poll(() => signed.find((one) => one.name === name)).toMatchObject({ result: { kind: 'failed' } })
    })

    it('not where they are denied, and by nobody here where another signer is asked', async () => {
      const denied = await asked((await aRequest()).pem)
      await approve(denied, 'Denied')
      const foreign = await asked((await aRequest()).pem, { signerName: 'example.com/nobody' })
      await approve(foreign)
      const last = await asked((await aRequest()).pem)
      await approve(last)
      await certificateOf(last)
      for (const name of [denied, foreign]) {
        expect((await get(name))?.status?.certificate).toBeUndefined()
        expect(await conditionsOf(name)).toHaveLength(1)
      }
    })

    it('in their hundreds at once', async () => {
      const names = await Promise.all(
        Array.from({ length: 100 }, async (_, n) => {
          const { pem } = await aRequest(subjectOfMember(`c${n}`, 'one'))
          const name = await asked(pem, { cluster: `c${n}` })
          await approve(name)
          return name
        }),
      )
      const serials = new Set<string>()
      for (const name of names) serials.add((await certificateOf(name)).serialNumber)
      expect(serials.size).toBe(100)
    })

    it('by one CA, where it is kept in a Secret that several hubs share', async () => {
      const open = () => Authority.open({ store: secretStore(kube, { namespace: NAMESPACE, name: 'hub-authority' }) })
      const [one, two] = await Promise.all([open(), open()])
      await Promise.all([one.refresh(), two.refresh()])
      expect(one.roots()).toEqual(two.roots())
      const judged = judgeRequest(signingRequest((await aRequest()).pem), [API_SIGNER])
      if (judged.kind !== 'recognised') throw new Error('not recognised')
      const certificate = new X509Certificate((await one.signClient(judged)).pem)
      expect(two.accepts(certificate)).toBe(true)
      await Promise.all([one.revoke({ cluster: 'east' }), two.rotate()])
      await Promise.all([one.refresh(), two.refresh()])
      expect(one.roots()).toEqual(two.roots())
      for (const each of [one, two, await open()]) expect(each.accepts(certificate)).toBe(false)
      await kube.delete(whole(secrets), { namespace: NAMESPACE, name: 'hub-authority' })
      await two.revoke({ cluster: 'west' }) // what was deleted comes back whole
      expect((await open()).roots()).toEqual(two.roots())
    })

    it('by a CA that is written again where its Secret was harmed or deleted while it runs', async () => {
      const key = { namespace: NAMESPACE, name: 'harmed-authority' }
      const open = () => Authority.open({ store: secretStore(kube, key) })
      const running = await open()
      const kept = (await kube.get(whole(secrets), key))?.data as Record<string, string>
      const half = Buffer.from(kept['authority.json'] ?? '', 'base64')
        .subarray(0, 500)
        .toString('base64')
      for (const data of [{ 'authority.json': half }, { 'authority.json': null }]) {
        await kube.patch(whole(secrets), key, { data }, { kind: 'merge' })
        await expect(open()).rejects.toThrow(AuthorityUnusableError)
        await running.keep()
        expect((await open()).roots()).toEqual(running.roots())
      }
      await kube.delete(whole(secrets), key)
      await running.keep()
      expect((await open()).roots()).toEqual(running.roots())
      expect(running.fault).toBeUndefined()
    })

    it('by no CA, as the ConfigMap says for as long as it cannot be used', async () => {
      const signal = new AbortController().signal
      const said = async () => unusableIn(await kube.get(configMaps, CONFIG_MAP))
      await sayUnusable(kube, CONFIG_MAP, 'its Secret is cut', signal)
      expect(await said()).toBe('its Secret is cut')
      await sayUnusable(kube, CONFIG_MAP, undefined, signal)
      expect(await said()).toBeUndefined()
      expect(await kube.get(configMaps, CONFIG_MAP)).toMatchObject({ data: { 'ca.crt': authority.pem } })
    })

    it('by a new CA after people asked for one, while the former is published too until they end it', async () => {
      const published = () => kube.get(configMaps, CONFIG_MAP)
      const authorities = async () =>
        String(((await published())?.data as Record<string, string> | undefined)?.authorities ?? '')
      await expect.poll(authorities).toMatch(/^[0-9a-f]{16} signs; ends/)
      const annotate = (annotations: Record<string, string>) =>
        kube.patch(configMaps, CONFIG_MAP, { metadata: { annotations } }, { kind: 'merge' })
      const before = (await authorities()).slice(0, 16)
      const name = await asked((await aRequest()).pem)
      await approve(name)
      const certificate = await certificateOf(name)
      await annotate({ 'clusterpulse.io/rotate': 'first' })
      await expect.poll(authorities).toMatch(new RegExp(`^${before} signs no more; .*\n[0-9a-f]{16} signs; `))
      expect(authority.accepts(certificate)).toBe(true)
      await expect
        .poll(async () => (await published())?.metadata.annotations?.['clusterpulse.io/rotated'])
        .toBe('first')
      expect(await published()).toMatchObject({ data: { 'ca.crt': authority.pem } })
      await annotate({ 'clusterpulse.io/end-authority': before })
      await expect.poll(authorities).not.toContain(before)
      expect(authority.accepts(certificate)).toBe(false)
      const active = (await authorities()).slice(0, 16)
      expect((await published())?.metadata.annotations).not.toHaveProperty(['clusterpulse.io/trouble'])
      await annotate({ 'clusterpulse.io/end-authority': before.slice(1) })
      const troubleOf = async () => (await published())?.metadata.annotations?.['clusterpulse.io/trouble']
      await expect
        .poll(troubleOf)
        .toBe(
          `no CA "${before.slice(1)}" is trusted, so none was ended: it is mistyped, or has ended before; those that are: ${active} (active)`,
        )
      await annotate({ 'clusterpulse.io/end-authority': before })
      await expect.poll(troubleOf).toBeUndefined()
      await annotate({ 'clusterpulse.io/end-authority': active })
      await expect
        .poll(async () => (await published())?.metadata.annotations?.['clusterpulse.io/trouble'])
        .toMatch(/rotate it first/)
      expect(authority.roots()).toHaveLength(1)
      expect(acts.map(({ act, id, trouble = '' }) => [act, id, trouble])).toEqual([
        ['authority_rotated', active, ''],
        ['authority_ended', before, ''],
        ['authority_ended', before.slice(1), expect.stringContaining(`those that are: ${active}`)],
        ['authority_ended', active, expect.stringContaining('rotate it first')],
      ])
      await annotate({ 'clusterpulse.io/end-authority': '' })
      await expect
        .poll(async () => (await published())?.metadata.annotations?.['clusterpulse.io/trouble'])
        .toBeUndefined()
      expect(authority.roots()).toHaveLength(1)
    })

    it('by the CA that was given as long as it is, whatever asks for another; that is said for as long as it is asked', async () => {
      const { certificate: cert, key } = signerOf('given')
      const folder = join(dir, 'given')
      const ofGiven = await Authority.open({ store: folderStore(folder), given: { cert, key } })
      const told: AuthorityAct[] = []
      const reconcilers = certificateReconcilers({
        ...{
          hub: kube,
          namespace: NAMESPACE,
          authority: ofGiven,
          signers: [],
        },
        ...{ onAct: (act) => void told.push(act), logger: silentLogger },
      })
      await manager.stop()
      manager = new Manager({ controllers: reconcilers, logger: silentLogger })
      const annotate = (annotations: Record<string, string>) =>
        kube.patch(configMaps, CONFIG_MAP, { metadata: { annotations } }, { kind: 'merge' })
      await annotate({ 'clusterpulse.io/rotate': 'to no purpose' })
      await manager.start()
      const annotations = async () => (await kube.get(configMaps, CONFIG_MAP))?.metadata.annotations
      await expect
        .poll(annotations)
        .toHaveProperty(['clusterpulse.io/trouble'], expect.stringMatching(/given by files/))
      await annotate({ 'clusterpulse.io/end-authority': 'bogus' })
      await expect
        .poll(annotations)
        .toHaveProperty(['clusterpulse.io/trouble'], expect.stringMatching(/given by files.*; no CA "bogus"/))
      expect(told.map(({ act, id }) => [act, id])).toEqual([
        ['authority_rotated', 'to no purpose'],
        ['authority_ended', 'bogus'],
      ])
      await annotate({ 'clusterpulse.io/end-authority': '', 'clusterpulse.io/rotate': '' })
      await expect.poll(annotations).not.toHaveProperty(['clusterpulse.io/trouble'])
      rmSync(folder, { recursive: true })
      writeFileSync(folder, 'no folder')
      await ofGiven.keep()
      await expect
        .poll(annotations)
        .toHaveProperty(
          ['clusterpulse.io/trouble'],
          expect.stringMatching(/is not kept any more, and cannot be written/),
        )
      rmSync(folder)
      await ofGiven.keep()
      await expect.poll(annotations).not.toHaveProperty(['clusterpulse.io/trouble'])
    })

    it('by the new CA from the moment the ConfigMap names, and it says so without anybody asking', async () => {
      const reconcilers = certificateReconcilers({
        ...{ hub: kube, namespace: NAMESPACE, authority, signers: [], activeAfterMs: 2000, logger: silentLogger },
      })
      await manager.stop()
      manager = new Manager({ controllers: reconcilers, logger: silentLogger })
      await manager.start()
      const authorities = async () => {
        const map = await kube.get(configMaps, CONFIG_MAP)
        return String((map?.data as Record<string, string> | undefined)?.authorities ?? '')
      }
      await kube.patch(
        configMaps,
        CONFIG_MAP,
        { metadata: { annotations: { 'clusterpulse.io/rotate': 'by the clock' } } },
        { kind: 'merge' },
      )
      await expect.poll(authorities, { interval: 100 }).toMatch(/ signs from \d{4}-\d\d-\d\dT[\d:.]+Z on; /)
      const next = authority.roots().find(({ state }) => state === 'next')
      await expect.poll(authorities).toMatch(new RegExp(`^${next?.id.slice(0, 16)} signs; `, 'm'))
    })
  })
})

const execFile = promisify(execFileOf)
const noKubectl = spawnSync('kubectl', ['version', '--client']).status !== 0 && process.env.CI_REQUIRE_ALL !== '1'

describe.skipIf(noKubectl)('kubectl', () => {
  it('approves and denies requests, and a member comes in with what it was given until its CA is ended', async () => {
    const dir = mkdtempSync(join(tmpdir(), 'certificates-'))
    const authority = await Authority.open({ store: folderStore(join(dir, 'ca')) })
    const hub = await anEmbeddedHub(authority)
    const kube = createKubeClient(hub.access)
    const parts = { hub: kube, namespace: NAMESPACE, authority, signers: [API_SIGNER], logger: silentLogger }
    const manager = new Manager({ controllers: certificateReconcilers(parts), logger: silentLogger })
    await manager.start()
    try {
      const { credentials } = hub.access
      const admin =
        hub.listener?.kubeconfig({ context: 'hub', token: credentials.kind === 'token' ? credentials.token : '' }) ?? ''
      const kubeconfig = join(dir, 'kubeconfig')
      writeFileSync(kubeconfig, admin, { mode: 0o600 })
      /** What it says, whether it went well or not. */
      const kubectl = async (args: readonly string[], config: string, input?: string): Promise<string> => {
        const running = execFile('kubectl', args, { env: { ...process.env, KUBECONFIG: config, HOME: dir } })
        running.child.stdin?.end(input ?? '')
        const { stdout, stderr } = await running.catch((error: { stdout: string; stderr: string }) => error)
        return `${stdout}${stderr}`
      }
      const run = (args: readonly string[], input?: string) => kubectl(args, kubeconfig, input)
      const manifest = (name: string, pem: string) =>
        JSON.stringify({
          apiVersion: 'certificates.k8s.io/v1',
          kind: 'CertificateSigningRequest',
          metadata: { name, labels: { 'open-cluster-management.io/cluster-name': 'east' } },
          spec: { request: Buffer.from(pem).toString('base64'), signerName: API_SIGNER, usages: ['client auth'] },
        })
      const { pem, key } = await aRequest()
      expect(await run(['apply', '-f', '-'], manifest('east-1', pem))).toMatch(
        /certificatesigningrequest.*east-1 created/,
      )
      expect(await run(['apply', '-f', '-'], manifest('east-2', pem))).toMatch(/created/)
      expect(await run(['get', 'csr'])).toMatch(
        /east-1 +\S+ +kubernetes.io\/kube-apiserver-client +hub +<none> +Pending/,
      )
      expect(await run(['certificate', 'approve', 'east-1'])).toMatch(/east-1 approved/)
      expect(await run(['certificate', 'deny', 'east-2'])).toMatch(/east-2 denied/)
      await expect.poll(() => run(['get', 'csr', 'east-1'])).toContain('Approved,Issued')
      expect(await run(['get', 'csr', 'east-2'])).toContain('Denied')
      expect(await run(['certificate', 'approve', 'east-2'])).toMatch(/already Denied/)
      expect(await run(['describe', 'csr', 'east-1'])).toMatch(/Common Name: +system:open-cluster-management:east:one/)
      writeFileSync(join(dir, 'member.key'), key.export({ type: 'pkcs8', format: 'pem' }), { mode: 0o600 })
      writeFileSync(
        join(dir, 'member.crt'),
        Buffer.from(await run(['get', 'csr', 'east-1', '-o', 'jsonpath={.status.certificate}']), 'base64'),
      )
      writeFileSync(join(dir, 'ca.crt'), hub.listener?.caPem ?? '')
      const asMember = (...args: string[]) => {
        const identity = [
          `--server=${hub.access.server}`,
          `--certificate-authority=${join(dir, 'ca.crt')}`,
          `--client-certificate=${join(dir, 'member.crt')}`,
          `--client-key=${join(dir, 'member.key')}`,
        ]
        return kubectl([...identity, ...args], '/dev/null')
      }
      expect(
        await asMember('auth', 'whoami', '-o', 'jsonpath={.status.userInfo.username} {.status.userInfo.groups}'),
      ).toBe('system:open-cluster-management:east:one ["system:open-cluster-management:east","system:authenticated"]')
      expect(await asMember('get', 'secrets', '-A')).toMatch(/Forbidden.*"system:open-cluster-management:east:one"/)
      const [former] = authority.roots()
      expect(await run(['annotate', 'configmap', AUTHORITY_CONFIG_MAP, 'clusterpulse.io/rotate=now'])).toMatch(
        /annotated/,
      )
      await expect.poll(() => authority.roots()).toHaveLength(2)
      expect(await asMember('auth', 'whoami')).toContain('system:open-cluster-management:east')
      await authority.end(former?.id ?? '')
      expect(await asMember('auth', 'whoami')).toMatch(/Unauthorized|must be logged in/)
    } finally {
      await manager.stop()
      await kube[Symbol.asyncDispose]()
      await hub.stop()
      rmSync(dir, { recursive: true, force: true })
    }
  })
})
