import { randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accessForContext, createKubeClient, loadKubeconfig, type Resource } from '#kube'
import { silentLogger } from '#runtime'
import { TestAuthority } from '../../platform/apiserver/test/certificates.ts'
import { type ControlPlane, openControlPlane, unneededKeysWords } from './control-plane.ts'
import { HUB_NAMESPACE } from './object-names.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'control-plane-'))
  await using _first = await open()
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

const said: string[] = []
const logger = { ...silentLogger, error: (_: unknown, text: string) => said.push(text) } as typeof silentLogger
const open = (more: { clientCa?: string; encryptionKeys?: Buffer[] } = {}) =>
  openControlPlane({ dataDir, port: 0, version: '0', logger, ...more })
const inFolder = (name: string) => join(dataDir, 'control-plane', name)
const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true }
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false }

const harms: Record<string, (bytes: Buffer) => Buffer> = {
  emptied: () => Buffer.alloc(0),
  'cut off': (bytes) => bytes.subarray(0, bytes.length / 2),
  'zeroed in the middle': (bytes) => Buffer.from(bytes).fill(0, bytes.length >> 1, (bytes.length >> 1) + 8),
  'altered by a bit': (bytes) => {
    const at = Math.floor(bytes.length / 2)
    const altered = Buffer.from(bytes)
    altered.writeUInt8((bytes[at] ?? 0) ^ 1, at)
    return altered
  },
}

describe('the embedded control plane', () => {
  it('says of objects that are gone as a whole that they are, not one of them', async () => {
    await rm(inFolder('objects'), { recursive: true })
    await expect(open()).rejects.toThrow(/^all objects stored under .* are gone.*--accept-loss/)
  })

  const hidden = `hidden-${randomBytes(24).toString('hex')}`
  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'hidden', namespace: 'default' },
    stringData: { key: hidden },
  }
  const secretOf = ({ server }: ControlPlane) =>
    server.objects.get({ group: '', version: 'v1', plural: 'secrets' }, secret.metadata)?.data
  /** Files of the folder that hold it, raw or in base64. */
  async function whereIs(text: string): Promise<string[]> {
    const entries = await readdir(dataDir, { recursive: true, withFileTypes: true })
    const paths = entries.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name))
    const contents = await Promise.all(paths.map(async (path) => [path, await readFile(path)] as const))
    const forms = [text, Buffer.from(text).toString('base64').slice(0, -4)]
    return contents.filter(([, bytes]) => forms.some((form) => bytes.includes(form))).map(([path]) => path)
  }

  it('keeps nothing of a Secret, and no key of its CA, where somebody reads them off the disk', async () => {
    {
      await using plane = await open()
      await plane.server.objects.create(secret)
    }
    expect(await whereIs(hidden)).toEqual([])
    expect(await whereIs('PRIVATE KEY')).toEqual([])
    expect(await whereIs('kube-system')).toEqual([])
    await using plane = await open()
    expect(secretOf(plane)).toEqual({ key: Buffer.from(hidden).toString('base64') })
  })

  it('goes over to a key that is given, says when the former one may go, and is refused without either', async () => {
    let words: string | undefined
    const given = randomBytes(32)
    {
      await using plane = await open()
      await plane.server.objects.create(secret)
    }
    const opened = async (...encryptionKeys: Buffer[]) => {
      await using plane = await open({ encryptionKeys })
      words = unneededKeysWords(plane)
      return secretOf(plane)
    }
    const kept = { key: Buffer.from(hidden).toString('base64') }
    expect(await opened(given)).toEqual(kept)
    expect(words).toMatch(/former key [0-9a-f]{16} any more.*may go/)
    for (const name of ['encryption.key', 'encryption.key.copy']) await rm(inFolder(name))
    expect(await opened(given)).toEqual(kept)
    expect(words).toBeUndefined()
    for (const wrong of [[], [randomBytes(32)]])
      await expect(opened(...wrong)).rejects.toMatchObject({ code: 'encryption_key_missing' })
    expect(await opened(randomBytes(32), given)).toEqual(kept)
  })

  it('seals a key of its CA that lies there in the clear, and keeps the CA', async () => {
    const ca = await readFile(inFolder('pki/ca.crt'), 'utf8')
    {
      await using plane = await open()
      const sealed = await readFile(inFolder('pki/ca.key'))
      const pem = await plane.sealer.open(sealed, { kind: 'CertificateAuthority', name: 'clusterpulse-api-ca' })
      expect(pem.toString()).toMatch(/^-----BEGIN PRIVATE KEY-----/)
      await writeFile(inFolder('pki/ca.key'), pem)
    }
    await using _again = await open()
    expect(await whereIs('PRIVATE KEY')).toEqual([])
    expect(await readFile(inFolder('pki/ca.crt'), 'utf8')).toBe(ca)
  })

  it('lets in whom a client certificate names, as far as bindings say, and goes on so after a restart', async () => {
    const authority = await TestAuthority.create('people')
    const { cert, key } = await authority.sign({ subject: 'CN=ann, O=readers' })
    const code = async ({ url, kubeconfigPath }: ControlPlane) => {
      const access = await accessForContext(await loadKubeconfig([kubeconfigPath]))
      await using ann = createKubeClient({
        ...access,
        server: url,
        credentials: { kind: 'certificate', cert, key },
      })
      return ann.listAll(configMaps).then(
        () => 'listed',
        (error: unknown) => (error as { code?: string }).code,
      )
    }
    {
      await using plane = await open({ clientCa: authority.pem })
      expect(await code(plane)).toBe('kube_forbidden')
      await plane.server.objects.create({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'ClusterRoleBinding',
        metadata: { name: 'readers' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name: 'readers' }],
      })
      await expect.poll(() => code(plane)).toBe('listed')
    }
    {
      await using again = await open({ clientCa: authority.pem })
      expect(await code(again)).toBe('listed')
    }
    await using without = await open()
    expect(await code(without)).toBe('kube_unauthorized')
  })

  for (const file of ['admin.token', 'pki/ca.crt', 'pki/ca.key'])
    for (const [how, harm] of Object.entries(harms))
      it(`starts with ${file} ${how}, accepts its own kubeconfig, and stays what it then is`, async () => {
        said.length = 0
        await writeFile(inFolder(file), harm(await readFile(inFolder(file))))
        let kubeconfig: string
        {
          await using plane = await open()
          expect((await plane.client.get(namespaces, { name: HUB_NAMESPACE }))?.metadata.name).toBe(HUB_NAMESPACE)
          kubeconfig = await readFile(plane.kubeconfigPath, 'utf8')
          expect(await readFile(inFolder('admin.token'), 'utf8')).toMatch(/^[\w-]{43}$/)
        }
        expect(said).toEqual([expect.stringMatching(/new/)])
        await using again = await open()
        const stable = (text: string) => text.replace(/server: .*/, '')
        expect(stable(await readFile(again.kubeconfigPath, 'utf8'))).toBe(stable(kubeconfig))
      })

  it('makes a new CA, and says so, where half of it is gone', async () => {
    said.length = 0
    await rm(inFolder('pki/ca.key'))
    await using plane = await open()
    expect((await plane.client.get(namespaces, { name: HUB_NAMESPACE }))?.metadata.name).toBe(HUB_NAMESPACE)
    expect(said).toEqual([expect.stringContaining('a new CA is made')])
  })

  it('takes an empty folder of objects beside the traces of a hub for a loss', async () => {
    for (const name of await readdir(inFolder('objects')))
      await rm(join(inFolder('objects'), name), { recursive: true })
    await expect(open()).rejects.toThrow(/--accept-loss/)
    await rm(inFolder('objects'), { recursive: true })
    await rm(inFolder('admin.token'))
    await expect(open()).rejects.toThrow(/--accept-loss/)
  })
})
