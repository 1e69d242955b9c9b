import { X509Certificate } from 'node:crypto'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ApiServer, listenApi } from '#apiserver'
import { Authority, folderStore } from '#authority'
import { Manager } from '#controller'
import { createKubeClient, type KubeClient } from '#kube'
import { silentLogger } from '#runtime'
import { noRealApiServer, startRealApiServer } from '../../../test/real-apiserver.ts'
import { aRequest, openssl, opensslRequest, signerOf, signingRequest } from '../../platform/authority/test/requests.ts'
import { certificateReconcilers } from './index.ts'
import { certificateRequests } from './signing.ts'

/*
 * Kubernetes' own signing controller beside a real kube-apiserver, and ours beside the embedded API: the same requests to both.
 */
const SIGNER = 'kubernetes.io/kube-apiserver-client'
const EAST = '/O=system:open-cluster-management:east/CN=system:open-cluster-management:east:one'
const CONTROLLER = 'kube-controller-manager'
const isThere = existsSync(join(process.env.KUBEBUILDER_ASSETS ?? '', CONTROLLER))
const missing =
  process.env.CI_REQUIRE_ALL === '1'
    ? undefined
    : (noRealApiServer() ?? (isThere ? undefined : `no ${CONTROLLER} in KUBEBUILDER_ASSETS`))

interface Side {
  readonly kube: KubeClient
  stop(): Promise<void>
}

async function ours(): Promise<Side> {
  const dir = mkdtempSync(join(tmpdir(), 'signing-'))
  const authority = await Authority.open({ store: folderStore(dir) })
  const server = await ApiServer.open({ storage: { kind: 'memory' } })
  const grant = { token: 'word', user: 'admin', groups: ['system:masters'] }
  const listener = await listenApi({ tokens: [grant], mounts: new Map([['', server]]) })
  const credentials = { kind: 'token' as const, token: grant.token }
  const kube = createKubeClient({ server: listener.url, ca: listener.caPem, verifyTls: true, credentials })
  const parts = { hub: kube, namespace: 'default', authority, signers: [SIGNER], logger: silentLogger }
  const manager = new Manager({ controllers: certificateReconcilers(parts), logger: silentLogger })
  await manager.start()
  return {
    kube,
    async stop() {
      await manager.stop()
      await kube[Symbol.asyncDispose]()
      await listener[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
      rmSync(dir, { recursive: true, force: true })
    },
  }
}

async function theirs(): Promise<Side> {
  const started = await startRealApiServer()
  if (!started) throw new Error('no real kube-apiserver')
  const { certificate, key } = signerOf('clients')
  const signs = await started.runControllers(
    ['certificatesigningrequest-signing-controller'],
    [
      '--cluster-signing-cert-file={dir}/signer.crt',
      '--cluster-signing-key-file={dir}/signer.key',
      '--cluster-signing-duration=720h',
    ],
    { 'signer.crt': certificate, 'signer.key': key },
  )
  if (!signs) throw new Error(`no ${CONTROLLER}`)
  const kube = createKubeClient(started.access)
  return {
    kube,
    async stop() {
      await kube[Symbol.asyncDispose]()
      await started.stop()
    },
  }
}

describe.skipIf(missing)(`signing beside Kubernetes’ own controller${missing ? ` (skipped: ${missing})` : ''}`, () => {
  let sides: Side[] = []
  beforeAll(async () => {
    sides = [await ours(), await theirs()]
  })
  afterAll(() => Promise.all(sides.map((side) => side.stop())))

  let count = 0
  async function decided(
    { kube }: Side,
    pem: string,
    spec: object,
  ): Promise<{ certificate?: X509Certificate; failed?: object }> {
    const { metadata, spec: whole } = signingRequest(pem, spec)
    const { username: _, groups: __, ...given } = whole ?? {}
    const name = `east-${++count}`
    const made = await kube.create(certificateRequests, {
      metadata: { name, labels: { ...metadata.labels } },
      spec: given,
    })
    const conditions = [{ type: 'Approved', status: 'True', reason: 'Test', message: '' }]
    await kube.request('PUT', `/apis/certificates.k8s.io/v1/certificatesigningrequests/${name}/approval`, {
      body: {
        apiVersion: 'certificates.k8s.io/v1',
        kind: 'CertificateSigningRequest',
        ...made,
        status: { conditions },
      },
    })
    const status = async () => (await kube.get(certificateRequests, { name }))?.status
    await expect.poll(async () => (await status())?.certificate ?? (await status())?.conditions?.[1]).toBeTruthy()
    const { certificate, conditions: said = [] } = (await status()) ?? {}
    const { lastUpdateTime: ___, lastTransitionTime: ____, ...failed } = said[1] ?? { type: '', status: '' }
    return certificate ? { certificate: new X509Certificate(Buffer.from(certificate, 'base64')) } : { failed }
  }

  const both = (pem: string, spec: object) => Promise.all(sides.map((side) => decided(side, pem, spec)))

  it.each([[{}], [{ expirationSeconds: 7200 }], [{ expirationSeconds: 600 }], [{ expirationSeconds: 86_400 * 365 }]])(
    'makes certificates of the same subject, use and life: %j',
    async (spec) => {
      const made = await both((await aRequest()).pem, spec)
      const facts = made.map(({ certificate }) => {
        const text = openssl(
          ['x509', '-in', 'c.pem', '-noout', '-ext', 'keyUsage,extendedKeyUsage,basicConstraints', '-subject'],
          { 'c.pem': `${certificate}` },
        )
        const seconds = (Date.parse(certificate?.validTo ?? '') - Date.parse(certificate?.validFrom ?? '')) / 1000
        return {
          subject: certificate?.subject,
          purposes: certificate?.keyUsage,
          ca: certificate?.ca,
          seconds,
          text: text.includes('CA:FALSE'),
        }
      })
      expect(facts[0]).toEqual(facts[1])
      const begins = made.map(({ certificate }) => Date.now() - Date.parse(certificate?.validFrom ?? ''))
      for (const ms of begins) expect(ms).toBeGreaterThanOrEqual(5 * 60_000 - 1000)
    },
  )

  it.each([[['client auth', 'server auth']], [['digital signature']]])(
    'fails requests for the uses %j in the same words',
    async (usages) => {
      const made = await both((await aRequest()).pem, { usages })
      expect(made[0]).toEqual(made[1])
      expect(made[0]?.failed).toMatchObject({ type: 'Failed', reason: 'SignerValidationFailure' })
    },
  )

  it('signs alternative names there, and not here', async () => {
    const made = await both(opensslRequest(EAST, { more: ['-addext', 'subjectAltName=DNS:hub.example'] }), {})
    expect(made[1]?.certificate?.subjectAltName).toBe('DNS:hub.example')
    expect(made[0]?.failed).toMatchObject({ type: 'Failed', message: expect.stringMatching(/alternative names/) })
  })
})
