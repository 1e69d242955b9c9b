import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { parseEvent, Reader } from '../../src/pipeline/inventory/api/testing/reader.ts'
import { anInventory, configMap, SETTINGS, together } from '../inventory-manifests.ts'
import { clusterpulse, eventually, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

/**
 * The inventory of one agent over HTTP, beside a real kube-apiserver: the agent's account holds what deploy/inventory and its component `api`
 * give it, readers show tokens of service accounts.
 */
const missing = noRealApiServer()
const skip = missing !== undefined && process.env.CI_REQUIRE_ALL !== '1'

const READERS = `
apiVersion: v1
kind: ServiceAccount
metadata: { name: reader, namespace: shop }
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: stranger, namespace: shop }
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: readers, namespace: shop }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: clusterpulse-inventory-reader }
subjects: [{ kind: ServiceAccount, name: reader, namespace: shop }]
`

describe.skipIf(skip)(`the inventory API of an agent${skip ? ` (skipped: ${missing})` : ''}`, () => {
  let api: RealApiServer
  let folder: string
  let agent: Running
  let port: number
  let agentConfig: string
  const tokens = new Map<string, string>()

  async function kubectl(args: string, input?: string): Promise<string> {
    const file = join(folder, 'admin.yaml')
    const run = program('kubectl', ['--kubeconfig', file, ...args.split(' ')], input === undefined ? {} : { input })
    if ((await run.ended()) !== 0) throw new Error(`kubectl ${args}: ${run.stderr()}`)
    return run.stdout()
  }
  const tokenOf = async (account: string, namespace: string) =>
    (await kubectl(`create token ${account} -n ${namespace} --duration=1h`)).trim()

  const bearer = (who: string): Record<string, string> => ({ authorization: `Bearer ${tokens.get(who) ?? who}` })
  async function get(path: string, headers: Record<string, string> = bearer('reader')) {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers })
    return { status: answer.status, body: (await answer.json()) as { readonly items?: readonly object[] } }
  }
  const statusOf = async (path: string, headers?: Record<string, string>) => (await get(path, headers)).status
  const OWN = '/v1alpha1/inventory/shop/settings'

  async function startAgent(): Promise<void> {
    agent = clusterpulse(['agent'], {
      env: {
        CLUSTER_NAME: 'west',
        KUBECONFIG: agentConfig,
        BUFFER_DIR: join(folder, 'agent'),
        HEALTH_ADDRESS: '127.0.0.1:0',
        INVENTORY_HTTP_ENABLED: 'true',
        INVENTORY_HTTP_HOST: '127.0.0.1',
        INVENTORY_HTTP_PORT: '0',
        INVENTORY_AUTH_CACHE_TTL: '1s',
      },
    })
    const taken = () => /"port":(\d+)[^\n]*serves the inventory/.exec(agent.stderr())?.[1]
    port = Number(
      await eventually(
        async () => taken(),
        (found) => found !== undefined,
      ),
    )
  }

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'agent-inventory-api-'))
    const started = await startRealApiServer()
    if (!started) throw new Error(missing)
    api = started
    await writeFile(join(folder, 'admin.yaml'), api.kubeconfig)
    // As a person would put both together.
    const here = relative(folder, process.cwd())
    const kustomization = {
      apiVersion: 'kustomize.config.k8s.io/v1beta1',
      kind: 'Kustomization',
      resources: [join(here, 'deploy/inventory')],
      components: [join(here, 'deploy/inventory/api')],
    }
    await writeFile(join(folder, 'kustomization.yaml'), JSON.stringify(kustomization))
    await kubectl('apply -k deploy/crds/kollect')
    await kubectl(`apply -k ${folder}`)
    await kubectl('delete validatingwebhookconfiguration clusterpulse-inventory')
    await kubectl('create namespace shop')
    await kubectl('apply -f -', READERS)
    for (const who of ['reader', 'stranger']) tokens.set(who, await tokenOf(who, 'shop'))
    const token = await tokenOf('clusterpulse-agent', 'clusterpulse-agent')
    const [config] = parseAllDocuments(api.kubeconfig).map((one) => one.toJS() as { users: { user: object }[] })
    for (const user of config!.users) user.user = { token }
    agentConfig = join(folder, 'agent.yaml')
    await writeFile(agentConfig, JSON.stringify(config))
    await startAgent()
  })
  afterAll(async () => {
    await agent?.[Symbol.asyncDispose]()
    await api?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  it('says that nothing was read yet, and never shows that as an empty list', async () => {
    await kubectl('apply -f -', configMap('one'))
    await kubectl('apply -f -', together(SETTINGS, anInventory('settings')))
    // The agent may not read ConfigMaps yet: what it cannot read it does not call empty.
    await expect
      .poll(() => get(OWN))
      .toMatchObject({
        status: 503,
        body: { code: 'incomplete', waitsFor: [{ namespace: 'shop', name: 'settings' }] },
      })
    const role = clusterpulse(['inventory-role', '--kubeconfig', join(folder, 'admin.yaml'), '--http-api'])
    expect(await role.ended()).toBe(0)
    expect(role.stdout()).toMatch(/tokenreviews[\s\S]*subjectaccessreviews/)
    await kubectl('apply -f -', role.stdout())
    await expect
      .poll(() => get(OWN), { timeout: 90_000 })
      .toMatchObject({
        status: 200,
        body: { complete: true, itemCount: 1, items: [{ name: 'one', attributes: { mode: 'on' } }] },
      })
  })

  it('reads for whom the cluster knows and lets, and tells the others apart', async () => {
    expect(await statusOf(OWN, bearer('reader'))).toBe(200)
    expect(await statusOf(OWN, bearer('stranger'))).toBe(403)
    expect(await statusOf(OWN, {})).toBe(401)
    expect(await statusOf(OWN, bearer('garbage'))).toBe(401)
    expect(await statusOf(OWN, { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` })).toBe(401)
    expect(await statusOf(OWN, { authorization: `Bearer ${tokens.get('reader')}x` })).toBe(401)
    // A right of one namespace is none of the cluster: 403, and not the part that he may see.
    expect(await statusOf('/v1alpha1/inventory')).toBe(403)
    expect(await statusOf('/v1alpha1/inventory?namespace=default')).toBe(403)
    expect(await statusOf('/v1alpha1/inventory?namespace=shop')).toBe(200)
    expect(await statusOf('/v1alpha1/status/targets?namespace=shop')).toBe(200)
    expect(await statusOf('/v1alpha1/inventory/shop/none', bearer('stranger'))).toBe(403)
    expect(await statusOf('/v1alpha1/inventory/shop/none')).toBe(404)
  })

  it('tells how the inventory and its targets stand', async () => {
    await expect
      .poll(async () => (await get('/v1alpha1/status/inventories?namespace=shop')).body.items)
      .toMatchObject([{ name: 'settings', namespace: 'shop', generation: 1, observedGeneration: 1, itemCount: 1 }])
  })

  it('leads a stream along, through a restart of the agent', async () => {
    const reader = new Reader()
    const follow = async () => {
      const answer = await fetch(`http://127.0.0.1:${port}/v1alpha1/inventory/watch?namespace=shop&deltas=true`, {
        headers: { ...bearer('reader'), ...(reader.id && { 'last-event-id': reader.id }) },
      })
      expect(answer.status).toBe(200)
      let text = ''
      const read = async () => {
        for await (const part of answer.body!.pipeThrough(new TextDecoderStream())) {
          text += part
          const parts = text.split('\n\n')
          text = parts.pop() ?? ''
          for (const one of parts) {
            const event = parseEvent(one)
            if (event) reader.hear(event)
          }
        }
      }
      void read().catch(() => undefined)
    }
    const held = () => reader.rows.map(({ name, attributes }) => `${name}=${String(attributes.mode)}`)
    await follow()
    await expect.poll(held).toEqual(['one=on'])
    await kubectl('apply -f -', configMap('two'))
    await expect.poll(held).toEqual(['one=on', 'two=on'])
    await kubectl('apply -f -', configMap('one', 'off'))
    await kubectl('delete configmap two -n shop')
    await expect.poll(held).toEqual(['one=off'])
    await agent.kill('SIGKILL')
    await kubectl('apply -f -', configMap('three'))
    await startAgent()
    await expect.poll(() => statusOf(OWN).catch(() => 0)).toBe(200)
    await follow()
    await expect.poll(held).toEqual(['one=off', 'three=on'])
  })

  it('forgets who may after the time that is set', async () => {
    expect(await statusOf(OWN)).toBe(200)
    await kubectl('delete rolebinding readers -n shop')
    await expect.poll(() => statusOf(OWN)).toBe(403)
    await kubectl('delete serviceaccount reader -n shop')
    await expect.poll(() => statusOf(OWN)).toBe(401)
  })

  it('answers with 500 where the cluster does not say who asks', async () => {
    await kubectl('delete clusterrolebinding clusterpulse-inventory-api')
    await kubectl('delete clusterrolebinding clusterpulse-inventory-reads')
    await expect.poll(() => statusOf(OWN, bearer('stranger'))).toBe(500)
  })
})
