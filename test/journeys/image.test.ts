import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { buildRootfs, noContainers, runContainer } from '../containers.ts'
import { eventually, type Running } from '../process.ts'

const why = process.env.CI_REQUIRE_ALL === '1' ? undefined : noContainers()
/** As OpenShift assigns one to a namespace. */
const UID = 1_000_660_000

describe.skipIf(why !== undefined)(`the image${why === undefined ? '' : ` (not run: ${why})`}`, () => {
  let rootfs: string
  let data: string
  const running: Running[] = []
  beforeAll(() => {
    rootfs = buildRootfs()
    data = mkdtempSync(join(tmpdir(), 'image-data-'))
  })
  afterAll(async () => {
    for (const one of running) await one[Symbol.asyncDispose]()
    if (rootfs) rmSync(dirname(rootfs), { recursive: true, force: true })
    if (data) rmSync(data, { recursive: true, force: true })
  })

  it('serves as any user, without a capability, on a root that nobody can write to', async () => {
    const folder = join(data, 'own')
    // A volume the kubelet made writable for the group of the pod.
    mkdirSync(folder)
    chownSync(folder, 0, UID)
    chmodSync(folder, 0o2770)
    const hub = runContainer({
      rootfs,
      args: ['up', '--demo', '--port', '0', '--control-plane-port', '0', '--ingester-port', '0'],
      env: {},
      uid: UID,
      mounts: { '/data': folder },
    })
    running.push(hub)
    const [, address = ''] = await hub.says(/on (http:\S+)/)
    const status = readFileSync(`/proc/${hub.pid}/status`, 'utf8')
    const field = (name: string) => new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(status)?.[1]?.trim()
    expect(field('Uid')).toBe(`${UID}\t${UID}\t${UID}\t${UID}`)
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb']) expect(field(set), set).toBe('0000000000000000')
    expect(field('NoNewPrivs')).toBe('1')
    const mounts = readFileSync(`/proc/${hub.pid}/mountinfo`, 'utf8')
      .split('\n')
      .map((line) => line.split(' '))
    expect(mounts.find((words) => words[4] === '/')?.[5]).toMatch(/^ro\b/)

    type Clusters = { readonly items?: readonly { readonly nodes: object | null }[] }
    const read = ({ items = [] }: Clusters) => items.filter(({ nodes }) => nodes !== null).length
    // One of the six is off on purpose.
    await eventually(
      async () => (await (await fetch(`${address}/api/v2/clusters`)).json()) as Clusters,
      (clusters) => read(clusters) >= 5,
      120_000,
    )
    // A machine with more to do than it can answers 503 in between, and says so.
    const page = await eventually(
      () => fetch(address),
      ({ status }) => status === 200,
      60_000,
    )
    expect(await page.text()).toContain('<div id="root">')
    expect(await hub.kill('SIGTERM'), hub.stderr()).toBe(0)
  })

  it('holds no shell, no package manager and nothing of the development', () => {
    for (const name of [
      'bin/sh',
      'usr/bin/env',
      'usr/local/bin/npm',
      'app/src',
      'app/node_modules/vitest',
      'app/node_modules/react',
    ])
      expect(existsSync(join(rootfs, name)), name).toBe(false)
    expect(readdirSync(join(rootfs, 'app')).sort()).toEqual(['LICENSE', 'bin', 'dist', 'node_modules', 'package.json'])
  })
})
