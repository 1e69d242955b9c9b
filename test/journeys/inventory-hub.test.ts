import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type Client, createClient, type FleetPageView } from '#http'
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
 * One real cluster with objects of inventory, its agent, a hub it joined without a name of its own, and a PostgreSQL: both get the rows,
 * and neither waits for the other.
 */

const missing = noRealApiServer() ?? postgresMissing
const KIND = 'inventory'

const CLUSTER_TARGET = `
apiVersion: kollect.dev/v1alpha1
kind: KollectClusterTarget
metadata: { name: all }
spec:
  profileRef: { name: settings, namespace: shop }
  namespaceSelector: { matchLabels: { team: web } }
`
const declared = (dsn: string) => together(SETTINGS, CLUSTER_TARGET, toPostgres(dsn, 'settings'))
/** Sees the cluster with what these resources leave of it. */
const policy = (user: string, resources: readonly object[]) =>
  JSON.stringify({
    apiVersion: 'clusterpulse.io/v1alpha1',
    kind: 'MonitorAccessPolicy',
    metadata: { name: user, namespace: 'clusterpulse' },
    spec: {
      identity: { subjects: { users: [user] }, priority: 100 },
      access: { effect: 'Allow', enabled: true },
      scope: { clusters: { default: 'none', rules: [{ selector: { matchPattern: '.*' }, resources }] } },
    },
  })

describe.skipIf(missing !== undefined)(
  onPostgres(`inventory on the hub${missing ? ` (not run: ${missing})` : ''}`),
  { timeout: 300_000 },
  () => {
    let folder: string
    let api: RealApiServer
    let postgres: TestPostgres
    let members: Running
    let hub: Running
    let agent: Running
    let client: Client
    let ports: Readonly<Record<'page' | 'ingester', number>>
    let base: string
    const adminFile = () => join(folder, 'admin.yaml')
    const hubFile = () => join(folder, 'hub/kubeconfig')

    const kubectl = async (kubeconfig: string, args: string, input?: string): Promise<string> => {
      const words = ['--kubeconfig', kubeconfig, ...args.split(' ')]
      const run = program('kubectl', words, input === undefined ? {} : { input })
      if ((await run.ended()) !== 0) throw new Error(`kubectl ${args}: ${run.stderr()}`)
      return run.stdout()
    }
    const admin = (args: string, input?: string) => kubectl(adminFile(), args, input)
    const command = async (...args: string[]): Promise<string> => {
      const run = clusterpulse(args)
      expect(await run.ended(), run.stderr()).toBe(0)
      return run.stdout()
    }
    async function startHub(): Promise<void> {
      hub = clusterpulse([
        ...['up', '--kubeconfig', join(folder, 'members'), '--data-dir', join(folder, 'hub')],
        ...['--port', String(ports.page), '--control-plane-port', '0', '--ingester-port', String(ports.ingester)],
      ])
      await hub.says(/on (http:\S+)/)
    }
    function startAgent(token?: string): void {
      agent = clusterpulse(['join', ...(token === undefined ? [] : [token])], {
        env: {
          KUBECONFIG: adminFile(),
          BUFFER_DIR: join(folder, 'agent'),
          HEALTH_ADDRESS: '127.0.0.1:0',
          SINK_ALLOW_LOOPBACK: 'true',
        },
      })
    }

    const answer = (query = {}): Promise<FleetPageView> => client.fleetRows(KIND, { limit: 500, ...query })
    const onWest = async () => (await answer()).clusters.filter(({ cluster }) => cluster === 'west')
    /** `namespace/name target=mode` of every row that is shown */
    const shown = async (of = client) =>
      (await of.fleetRows(KIND, { limit: 500 })).items.map(({ cluster, namespace, name, values }) => {
        const { mode } = (values.attributes ?? {}) as { readonly mode?: string }
        return `${cluster} ${namespace}/${name} ${values.target}=${mode}`
      })
    const expectShown = (wanted: readonly string[], timeout = 60_000) =>
      expect.poll(() => shown().then((all) => all.sort(), String), { timeout }).toEqual([...wanted].sort())
    const stored = async (): Promise<readonly string[]> => {
      const rows = await postgres
        .query<{ cluster: string; name: string; mode: string }>(
          "select cluster, name, payload->'attributes'->>'mode' mode from inventory order by name",
        )
        .catch(() => [])
      return rows.map(({ cluster, name, mode }) => `${cluster} ${name}=${mode}`)
    }
    const expectStored = (wanted: readonly string[]) => expect.poll(stored).toEqual(wanted)
    /** A client that sees what this person does. */
    const as = async (username: string): Promise<Client> => {
      const begun = await fetch(`${base}/api/v2/access/view-as`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-clusterpulse-request': '1' },
        body: JSON.stringify({ username, groups: [] }),
      })
      expect(begun.status).toBe(200)
      const cookie = begun.headers.getSetCookie().map((text) => text.split(';', 1)[0])
      return createClient({ baseUrl: base, headers: { cookie: cookie.join('; ') } })
    }

    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'inventory-hub-'))
      ports = { page: await freePort(), ingester: await freePort() }
      base = `http://127.0.0.1:${ports.page}`
      members = clusterpulse([
        'simulate',
        '--clusters',
        '1',
        '--nodes',
        '1',
        '--kubeconfig-out',
        join(folder, 'members'),
      ])
      const real = startRealApiServer()
      postgres = await startPostgres()
      api = (await real) as RealApiServer
      await writeFile(adminFile(), api.kubeconfig)
      await postgres.query('grant create on schema public to app')
      await members.says(/kubeconfig in/)
      await startHub()
      client = createClient({ baseUrl: base })
      const said = await command('connect', 'west', '--accept', '--kubeconfig', hubFile())
      startAgent(/npx clusterpulse join (\S+)/.exec(said)?.[1])
    })
    afterAll(async () => {
      await agent?.kill('SIGTERM')
      for (const one of [hub, members]) await one?.[Symbol.asyncDispose]()
      await api?.stop()
      await postgres?.[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
    })

    it('notices within a minute that kinds of inventory were installed under a running agent', async () => {
      const outcomes = async () => {
        const kinds = [KIND, 'kollecttargets', 'kollectinventories', 'kollectsinks']
        const pages = await Promise.all(kinds.map((kind) => client.fleetRows(kind, { limit: 1 })))
        return pages.map(({ clusters }) => clusters.find(({ cluster }) => cluster === 'west')?.part.outcome)
      }
      await expect.poll(outcomes).toEqual(['absent', 'absent', 'absent', 'absent'])
      await admin('apply -k deploy/crds/kollect')
      await admin('wait --for=condition=Established crd --all')
      const installedAt = Date.now()
      // A read each minute, and what it takes a loaded machine.
      await expect.poll(outcomes, { timeout: 100_000 }).toEqual(['complete', 'complete', 'complete', 'complete'])
      console.log(`kinds of inventory were noticed after ${Math.round((Date.now() - installedAt) / 1000)} s`)
    })

    it('shows what targets chose, under the name the cluster is a member by, and the sink has the same', async () => {
      for (const namespace of ['shop', 'bank']) {
        await admin(`create namespace ${namespace}`)
        await admin(`label namespace ${namespace} team=web`)
      }
      await admin('apply -f -', together(configMap('a'), configMap('b'), configMap('safe', 'shut', 'bank')))
      await admin('apply -f -', declared(postgres.dsn()))
      await expectShown(
        [
          'west shop/a shop/settings=on',
          'west shop/b shop/settings=on',
          ...['west shop/a all=on', 'west shop/b all=on', 'west bank/safe all=shut'],
        ],
        120_000,
      )
      await expectStored(['west a=on', 'west b=on'])
      // The rows come before it is said that they are all.
      await expect.poll(onWest).toMatchObject([{ errorCount: 0, stale: false }])
    })

    it('follows what changes and goes', async () => {
      await admin('apply -f -', configMap('b', 'off'))
      await admin('delete configmap a -n shop')
      await expectShown(['west shop/b shop/settings=off', 'west shop/b all=off', 'west bank/safe all=shut'])
      await expectStored(['west b=off'])
    })

    it('is found, exported and printed like any other kind', async () => {
      const [row] = (await answer({ namespace: 'bank' })).items
      expect(row).toMatchObject({
        name: 'safe',
        values: { kind: 'ConfigMap', apiVersion: 'v1', attributes: { mode: 'shut' } },
      })
      const csv = await (await fetch(client.fleetRowsCsvUrl(KIND))).text()
      expect(csv).toMatch(/west.*safe.*"?\{""mode"":""shut""\}/)
      expect((await client.search('safe')).items.map(({ name }) => name)).toContain('safe')
      expect(await command('get', 'inventory', '--server', base)).toMatch(
        /west +bank +safe .*ConfigMap.*all.*mode=shut/,
      )
      expect(await command('get', 'inv', '--cluster', 'west', '--server', base)).toContain('safe')
    })

    it('shows who collects and who writes', async () => {
      const rowsOf = async (type: string) =>
        (await client.fleetRows(type, { limit: 10 })).items.map(({ name, values }) => ({ name, ...values }))
      await expect
        .poll(() => rowsOf('kollecttargets'))
        .toEqual([
          expect.objectContaining({ name: 'all', status: 'Ready' }),
          expect.objectContaining({ name: 'settings', status: 'Ready', rows: 1, failures: 0, profile: 'settings' }),
        ])
      await expect
        .poll(() => rowsOf('kollectinventories'))
        .toEqual([
          expect.objectContaining({ status: 'Ready', rows: 1, sinks: 1, failing: 0, lastExportAt: expect.any(Number) }),
        ])
      await expect
        .poll(() => rowsOf('kollectsinks'))
        .toEqual([
          expect.objectContaining({
            ...{ type: 'postgres', status: 'Connected', exports: 'Caught up', rows: 1, behindSince: null },
            ...{ lastExportAt: expect.any(Number), failingSince: null, conflict: null },
          }),
        ])
    })

    it('is shown to those whose policy names it or filters nothing, in the namespaces they see', async () => {
      const inShop = { type: 'namespaces', visibility: 'filtered', filters: { names: { allowed: ['shop'] } } }
      for (const object of [
        policy('anna', []),
        policy('ben', [inShop, { type: 'inventory', visibility: 'all' }]),
        policy('carl', [inShop]),
      ])
        await kubectl(hubFile(), 'apply -f -', object)
      const seen = async (user: string) => shown(await as(user)).then((all) => all.length, String)
      await expect.poll(() => seen('anna')).toBe(3)
      // Targets of the cluster are in no namespace: who sees some namespaces only sees none of them, nor reads their names.
      await expect
        .poll(async () => shown(await as('ben')).then((all) => all.sort(), String))
        .toEqual(['west shop/b null=off', 'west shop/b shop/settings=off'])
      expect((await (await as('ben')).search('safe')).items).toEqual([])
      expect(await seen('carl')).not.toBe(3)
      const carl = await as('carl')
      expect((await carl.types()).items.map(({ type }) => type)).not.toContain(KIND)
    })

    it('takes no row as gone while a target is incomplete, also after the agent was killed', async () => {
      const suspend = async (isSuspended: boolean) => {
        const [body, all] = [JSON.stringify({ spec: { suspend: isSuspended } }), ['kollectclustertarget', 'all']]
        const run = program('kubectl', ['--kubeconfig', adminFile(), 'patch', ...all, '--type=merge', '-p', body])
        expect(await run.ended(), run.stderr()).toBe(0)
      }
      const all = await shown()
      await suspend(true)
      await agent.kill('SIGKILL')
      await admin('delete configmap safe -n bank')
      startAgent()
      const errors = async () => (await onWest()).flatMap(({ errors: all }) => all.map(({ code }) => code))
      await expect.poll(errors, { timeout: 120_000 }).toContain('incomplete')
      expect((await shown()).sort()).toEqual(all.sort())
      await suspend(false)
      await expectShown(['west shop/b shop/settings=off', 'west shop/b all=off'], 120_000)
      await expect.poll(onWest).toMatchObject([{ errorCount: 0 }])
    })

    it('keeps no sink waiting while the hub is away, and gets what differs when it is back', async () => {
      await hub.kill('SIGTERM')
      for (const mode of ['1', '2', '3']) {
        await admin('apply -f -', configMap('b', mode))
        await expectStored([`west b=${mode}`])
      }
      await admin('apply -f -', configMap('c', 'new'))
      await expectStored(['west b=3', 'west c=new'])
      await startHub()
      await expectShown(
        ['shop/b shop/settings=3', 'shop/b all=3', 'shop/c shop/settings=new', 'shop/c all=new'].map(
          (row) => `west ${row}`,
        ),
        120_000,
      )
    })

    it('shows that the agent of another cluster writes under the same name, and who, until one of both is stopped', {
      tags: ['long'],
    }, async () => {
      const clone = await startRealApiServer()
      if (!clone) throw new Error('there is no real kube-apiserver')
      onTestFinished(() => clone.stop())
      const file = join(folder, 'clone.yaml')
      await writeFile(file, clone.kubeconfig)
      await kubectl(file, 'apply -k deploy/crds/kollect')
      await kubectl(file, 'wait --for=condition=Established crd --all')
      await kubectl(file, 'create namespace shop')
      await kubectl(file, 'apply -f -', declared(postgres.dsn()))
      const system = await kubectl(file, 'get namespace kube-system -o jsonpath={.metadata.uid}')
      const before = await stored()
      const other = clusterpulse(['agent'], {
        env: {
          CLUSTER_NAME: 'west',
          KUBECONFIG: file,
          BUFFER_DIR: join(folder, 'clone'),
          HEALTH_ADDRESS: '127.0.0.1:0',
          SINK_ALLOW_LOOPBACK: 'true',
        },
      })
      onTestFinished(() => other[Symbol.asyncDispose]())
      const written = async () =>
        (await client.fleetRows('kollectinventories', { limit: 10 })).items.find(({ cluster }) => cluster === 'west')
          ?.values
      const who = expect.stringContaining(`in cluster ${system.slice(0, 13)} writes under the cluster name west, too`)
      await expect.poll(written, { timeout: 180_000 }).toMatchObject({
        ...{ status: 'Degraded', failing: 1, failingSince: expect.any(Number), conflict: who, why: who },
        exports: [expect.objectContaining({ sink: 'database/warehouse', status: 'WriterConflict', message: who })],
      })
      expect(await command('get', 'kinv', '-o', 'wide', '--server', base)).toContain(system.slice(0, 13))
      const sink = async () => (await client.fleetRows('kollectsinks', { limit: 10 })).items[0]?.values
      await expect.poll(sink).toMatchObject({ exports: 'Other writer', conflict: who, why: who })
      expect(await stored()).toEqual(before)
      await other.kill('SIGTERM')
      await expect.poll(written, { timeout: 240_000 }).toMatchObject({ status: 'Ready', failing: 0, conflict: null })
      expect(await stored()).toEqual(before)
    })

    it('is written by an agent that asks to become a member, whatever the hub says and when', async () => {
      const said = await command('connect', 'east', '--kubeconfig', hubFile())
      const asking = clusterpulse(['join', /npx clusterpulse join (\S+)/.exec(said)?.[1] ?? ''], {
        env: {
          KUBECONFIG: adminFile(),
          BUFFER_DIR: join(folder, 'east'),
          HEALTH_ADDRESS: '127.0.0.1:0',
          SINK_ALLOW_LOOPBACK: 'true',
        },
      })
      onTestFinished(() => asking[Symbol.asyncDispose]())
      await expect.poll(stored).toEqual(expect.arrayContaining(['east b=3', 'east c=new']))
      await expect.poll(asking.stderr).toContain('waiting: somebody must accept it')
      await asking.kill('SIGTERM')
      expect(asking.stderr()).not.toMatch(/east is a member|did not stop in time/)
    })
  },
)
