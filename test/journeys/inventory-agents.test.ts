import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { webhookConfigurations } from '#webhooks'
import { INVENTORY_WEBHOOKS, inventoryRules } from '../../src/apps/inventory-webhooks.ts'
import {
  onPostgres,
  postgresMissing,
  startPostgres,
  type TestPostgres,
} from '../../src/pipeline/sinks/testing/postgres-server.ts'
import { freePort } from '../../src/platform/runtime/testing/free-port.ts'
import { configMap, SETTINGS, together, toPostgres } from '../inventory-manifests.ts'
import { clusterpulse, program, type Running } from '../process.ts'
import { noRealApiServer, type RealApiServer, startRealApiServer } from '../real-apiserver.ts'

/*
 * Inventory without a hub: two real clusters, an agent beside each, one PostgreSQL. The agents' accounts hold what deploy/inventory gives
 * them, and what `clusterpulse inventory-role` prints.
 */

const missing = noRealApiServer() ?? postgresMissing
const NAMES = ['west', 'east'] as const
type Name = (typeof NAMES)[number]

interface Cluster {
  readonly api: RealApiServer
  readonly admin: string
  /** kubeconfig of the agent's account */
  readonly agent: string
  readonly folder: string
}

let folder: string
let webhooksPort: number
let postgres: TestPostgres
const clusters = new Map<Name, Cluster>()
const agents = new Map<Name, Running>()

const of = (name: Name) => clusters.get(name) as Cluster

async function kubectl(kubeconfig: string, args: string, input?: string): Promise<string> {
  const run = program('kubectl', ['--kubeconfig', kubeconfig, ...args.split(' ')], input === undefined ? {} : { input })
  const code = await run.ended()
  if (code !== 0) throw new Error(`kubectl ${args}: ${run.stderr()}`)
  return run.stdout()
}
const admin = (name: Name, args: string, input?: string) => kubectl(of(name).admin, args, input)

async function startCluster(name: Name): Promise<void> {
  const api = await startRealApiServer()
  if (!api) return
  const adminFile = join(folder, `${name}.yaml`)
  await writeFile(adminFile, api.kubeconfig)
  const cluster = { api, admin: adminFile, agent: join(folder, `${name}-agent.yaml`), folder: join(folder, name) }
  clusters.set(name, cluster)
  await admin(name, 'apply -k deploy/crds/kollect')
  await admin(name, 'apply -k deploy/inventory')
  // There is no network of Services here, in which the API server would find the agent.
  await admin(name, 'delete validatingwebhookconfiguration clusterpulse-inventory')
  await admin(name, 'create namespace shop')
  await writeFile(cluster.agent, await kubeconfigOf(name, 'clusterpulse-agent -n clusterpulse-agent'))
}

/** Of an account of a cluster. */
async function kubeconfigOf(name: Name, account: string): Promise<string> {
  const token = (await admin(name, `create token ${account} --duration=1h`)).trim()
  const [config] = parseAllDocuments(of(name).api.kubeconfig).map((one) => one.toJS() as { users: { user: object }[] })
  for (const user of config!.users) user.user = { token }
  return JSON.stringify(config)
}

const agentEnv = (name: Name) => ({
  CLUSTER_NAME: name,
  KUBECONFIG: of(name).agent,
  BUFFER_DIR: of(name).folder,
  HEALTH_ADDRESS: '127.0.0.1:0',
  SINK_ALLOW_LOOPBACK: 'true',
})

/** One of several agents of `west`. Other than in a cluster, each is on this machine; times are short. */
function startReplica(nth: number): Running {
  const times = { LEADER_ELECT_LEASE: '6s', LEADER_ELECT_DEADLINE: '4s', LEADER_ELECT_RETRY: '250ms' }
  const BUFFER_DIR = join(folder, `replica-${nth}`)
  return clusterpulse(['agent'], { env: { ...agentEnv('west'), ...times, BUFFER_DIR, LEADER_ELECT: 'true' } })
}

/** What a replica says of itself at `path`. */
async function probe(
  replica: Running,
  path: string,
): Promise<{ status: number; leading?: boolean; standsBy?: string; inventory?: { message?: string } }> {
  const port = /"port":(\d+),.*serves \/healthz/.exec(replica.stderr())?.[1]
  if (port === undefined) return { status: 0 }
  const answer = await fetch(`http://127.0.0.1:${port}${path}`)
  return { ...((await answer.json()) as object), status: answer.status }
}
const expectLeading = (replica: Running) =>
  expect.poll(() => probe(replica, '/healthz')).toMatchObject({ leading: true })

function startAgent(name: Name): Running {
  const agent = clusterpulse(['agent'], {
    env: {
      ...agentEnv(name),
      ...(name === 'west' && {
        WEBHOOKS_ENABLED: 'true',
        WEBHOOKS_HOST: '127.0.0.1',
        WEBHOOKS_PORT: String(webhooksPort),
        WEBHOOKS_NAMES: '127.0.0.1',
      }),
    },
  })
  agents.set(name, agent)
  return agent
}

const giveRole = async (name: Name) => {
  const run = clusterpulse(['inventory-role', '--kubeconfig', of(name).admin])
  expect([await run.ended(), run.stderr()]).toEqual([0, ''])
  await admin(name, 'apply -f -', run.stdout())
  return run.stdout()
}

/** Puts an object of the store of one cluster into that of the other, as it is. */
async function copyStored(path: string): Promise<void> {
  const call = async (name: Name, verb: string, body: object) => {
    const answer = await fetch(`${of(name).api.etcdUrl}/v3/kv/${verb}`, { method: 'POST', body: JSON.stringify(body) })
    return (await answer.json()) as { readonly kvs?: readonly { readonly value: string }[] }
  }
  const key = Buffer.from(path).toString('base64')
  const [stored] = (await call('west', 'range', { key })).kvs ?? []
  expect(stored).toBeDefined()
  await call('east', 'put', { key, value: stored?.value })
}

/** `cluster/namespace/name=mode` of every row. */
async function rows(): Promise<readonly string[]> {
  const found = await postgres
    .query<{ cluster: string; namespace: string; name: string; attributes: { mode: string } }>(
      "select cluster, namespace, name, payload->'attributes' attributes from inventory order by cluster, namespace, name",
    )
    .catch((error: unknown) => {
      // The table is made with the first rows.
      if (!String(error).includes('does not exist')) throw error
      return []
    })
  return found.map(({ cluster, namespace, name, attributes }) => `${cluster}/${namespace}/${name}=${attributes.mode}`)
}
const expectRows = (wanted: readonly string[]) => expect.poll(rows, { timeout: 120_000 }).toEqual(wanted)
const condition = async (name: Name, type: string) =>
  admin(name, `get kollecttarget settings -n shop -o jsonpath={.status.conditions[?(@.type=="${type}")].reason}`)

describe.skipIf(missing !== undefined)(
  onPostgres(`two agents and no hub${missing ? ` (not run: ${missing})` : ''}`),
  () => {
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'inventory-agents-'))
      webhooksPort = await freePort()
      ;[postgres] = await Promise.all([startPostgres(), ...NAMES.map(startCluster)])
      await postgres.query('grant create on schema public to app')
    })
    afterAll(async () => {
      for (const agent of agents.values()) await agent.kill('SIGTERM')
      for (const { api } of clusters.values()) await api.stop()
      await postgres[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    })

    it('say what they may not read, and go on when they may', async () => {
      for (const name of NAMES) {
        await admin(name, 'apply -f -', together(SETTINGS, toPostgres(postgres.dsn(), 'settings')))
        await admin(name, 'apply -f -', together(configMap('a'), configMap('b')))
        startAgent(name)
      }
      for (const name of NAMES)
        await expect.poll(() => condition(name, 'Synced'), { timeout: 120_000 }).toBe('ScopeForbidden')
      const told = () => probe(agents.get('east') as Running, '/healthz').then(({ inventory }) => inventory?.message)
      await expect.poll(told).toMatch(/^objects of targets \(v1 ConfigMap\) cannot be followed since \S+Z: /)
      expect(await rows()).toEqual([])
      const role = await giveRole('west')
      expect(role).toMatch(/resources:\n +- configmaps/)
      expect(role).not.toContain('*')
      await giveRole('east')
      for (const name of NAMES)
        await expect.poll(() => condition(name, 'Ready'), { timeout: 120_000 }).toBe('Collecting')
      await expect.poll(told, { timeout: 120_000 }).toBeUndefined()
    })

    it('write the rows of both into one table, each under its name', async () => {
      await expectRows(['east/shop/a=on', 'east/shop/b=on', 'west/shop/a=on', 'west/shop/b=on'])
    })

    it('change and delete their own rows only, also where both clusters have an object with one uid', async () => {
      await admin('east', 'delete configmap a -n shop')
      await expectRows(['east/shop/b=on', 'west/shop/a=on', 'west/shop/b=on'])
      // No API lets anybody choose a uid: a cluster that was restored from the backup of another has those of that one.
      await copyStored('/registry/configmaps/shop/a')
      await expectRows(['east/shop/a=on', 'east/shop/b=on', 'west/shop/a=on', 'west/shop/b=on'])
      const uids = await postgres.query<{ uid: string }>("select distinct uid from inventory where name = 'a'")
      expect(uids).toHaveLength(1)
      await admin('west', 'apply -f -', configMap('b', 'off'))
      await admin('east', 'delete configmap a -n shop')
      await expectRows(['east/shop/b=on', 'west/shop/a=on', 'west/shop/b=off'])
    })

    it('delete nothing when they are started anew, however they ended', async () => {
      const before = await postgres.counts('inventory')
      for (const [turn, signal] of (['SIGTERM', 'SIGKILL'] as const).entries()) {
        await agents.get('west')?.kill(signal)
        await admin('west', 'apply -f -', configMap('c', String(turn)))
        startAgent('west')
        await expectRows(['east/shop/b=on', 'west/shop/a=on', 'west/shop/b=off', `west/shop/c=${turn}`])
      }
      expect((await postgres.counts('inventory')).deleted).toBe(before.deleted)
    })

    it('have one writer among their replicas, and another goes on where that one is gone or was away for too long', async () => {
      await agents.get('west')?.kill('SIGTERM')
      const others = ['east/shop/b=on', 'west/shop/a=on', 'west/shop/b=off']
      // PostgreSQL counts with a delay: what was deleted before, by east, is waited for.
      const deleted = async () => (await postgres.counts('inventory')).deleted
      await expect.poll(deleted).toBe(2)
      await using first = startReplica(1)
      await expectLeading(first)
      await using second = startReplica(2)
      await expect.poll(() => probe(second, '/readyz')).toMatchObject({ status: 200 })
      const holder = await admin(
        'west',
        'get lease clusterpulse-agent -n clusterpulse-agent -o jsonpath={.spec.holderIdentity}',
      )
      const standsBy = expect.stringContaining(holder)
      await expect.poll(() => probe(second, '/healthz')).toMatchObject({ leading: false, standsBy })
      await admin('west', 'apply -f -', configMap('c', 'first'))
      await expectRows([...others, 'west/shop/c=first'])

      // It stands still, as on a machine that hangs, and has missed its time when it goes on.
      process.kill(first.pid, 'SIGSTOP')
      await expectLeading(second)
      await admin('west', 'apply -f -', configMap('c', 'second'))
      await expectRows([...others, 'west/shop/c=second'])
      process.kill(first.pid, 'SIGCONT')
      expect(await first.ended()).toBe(1)
      expect(first.stderr()).toContain('the lease is lost')

      await using third = startReplica(3)
      await second.kill('SIGKILL')
      await expectLeading(third)
      await admin('west', 'apply -f -', configMap('c', 'third'))
      await expectRows([...others, 'west/shop/c=third'])
      await third.kill('SIGTERM')
      expect(await deleted()).toBe(2)
      const left = await admin(
        'west',
        'get lease clusterpulse-agent -n clusterpulse-agent -o jsonpath={.spec.holderIdentity}',
      )
      expect(left).toBe('')
      startAgent('west')
    })

    it('are asked by the API server whether an object can be used, and keep nobody from writing while they are away', async () => {
      const [, validating] = webhookConfigurations({
        name: INVENTORY_WEBHOOKS,
        rules: inventoryRules({ semantics: 'strict', maxExportBytes: 1_572_864 }),
        reached: { url: `https://127.0.0.1:${webhooksPort}` },
      })
      await admin('west', 'apply -f -', JSON.stringify(validating))
      const bad = (name: string) => `
apiVersion: kollect.dev/v1alpha1
kind: KollectTarget
metadata: { name: ${name}, namespace: shop }
spec: { profileRef: other/settings }
`
      const refusal = () => admin('west', 'apply --dry-run=server -f -', bad('bad')).then(String, String)
      await expect.poll(refusal).toMatch(/spec\.profileRef/)
      await agents.get('west')?.kill('SIGTERM')
      await admin('west', 'apply -f -', bad('bad'))
      startAgent('west')
      const reason = () =>
        admin('west', 'get kollecttarget bad -n shop -o jsonpath={.status.conditions[?(@.type=="Degraded")].reason}')
      await expect.poll(reason).toBe('TargetInvalid')
      // What cannot be used may always go.
      await admin('west', 'delete kollecttarget bad -n shop --timeout=60s')
    })

    it('of a tenant collect by rights of its namespace alone', async () => {
      await agents.get('east')?.kill('SIGTERM')
      await admin('east', 'create namespace team-a')
      await admin('east', 'create serviceaccount agent -n team-a')
      const inTeam = (manifests: string) => manifests.replaceAll('namespace: shop', 'namespace: team-a')
      await admin(
        'east',
        'apply -f -',
        inTeam(together(SETTINGS, toPostgres(postgres.dsn(), 'settings'), configMap('t'))),
      )
      const KUBECONFIG = join(folder, 'tenant.yaml')
      await writeFile(KUBECONFIG, await kubeconfigOf('east', 'agent -n team-a'))
      const tenant = { KUBECONFIG, TENANT_MODE: 'true', WATCH_NAMESPACES: 'team-a', BUFFER_DIR: join(folder, 'tenant') }
      await using agent = clusterpulse(['agent'], { env: { ...agentEnv('east'), ...tenant } })
      const message = async () => JSON.stringify(await probe(agent, '/healthz'))
      await expect.poll(message).toMatch(/team-a .*may not be read.* --tenant team-a/)

      const role = [
        'inventory-role',
        '--tenant',
        'team-a',
        '--account',
        'team-a/agent',
        '--kubeconfig',
        of('east').admin,
      ]
      const run = clusterpulse(role)
      expect([await run.ended(), run.stderr()]).toEqual([0, ''])
      const kinds = parseAllDocuments(run.stdout()).map((one) => (one.toJS() as { kind: string }).kind)
      expect(kinds).toEqual(['Role', 'RoleBinding'])
      await admin('east', 'apply -f -', run.stdout())
      const ofTeam = async () => (await rows()).filter((row) => row.startsWith('east/team-a/'))
      await expect.poll(ofTeam, { timeout: 120_000 }).toEqual(['east/team-a/t=on'])
      // Labels of the namespace are read, too: a change of them takes effect.
      await admin('east', 'label namespace team-a kollect.dev/watch=disabled')
      await expect.poll(ofTeam, { timeout: 120_000 }).toEqual([])
      // What belongs to others is as it was.
      expect((await rows()).filter((row) => row.startsWith('east/shop/'))).toEqual(['east/shop/b=on'])
    })
  },
)
