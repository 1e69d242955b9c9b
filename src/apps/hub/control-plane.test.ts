import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { accessForContext, createKubeClient, loadKubeconfig, type Resource } from '#kube'
import { silentLogger } from '#runtime'
import { TestAuthority } from '../../platform/apiserver/test/certificates.ts'
import { type ControlPlane, HUB_NAMESPACE, openControlPlane } from './control-plane.ts'

let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'control-plane-'))
  await using _first = await open()
})
afterEach(() => rm(dataDir, { recursive: true, force: true }))

const said: string[] = []
const logger = { ...silentLogger, error: (_: unknown, text: string) => said.push(text) } as typeof silentLogger
const open = (more: { clientCa?: string } = {}) => openControlPlane({ dataDir, port: 0, version: '0', logger, ...more })
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
        // A token that was altered into another token cannot be told from one; all else is said.
        if (!(file === 'admin.token' && how === 'altered by a bit'))
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
