import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { kubeconfigPaths } from '#kube'
import type { Member } from './members.ts'
import { fleetKubeconfigs, ownHubWords, withoutHub } from './own-kubeconfig.ts'

let folder: string
let own: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'own-kubeconfig-'))
  own = join(folder, 'kubeconfig')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('the kubeconfigs that `up` reads', () => {
  const chosen = (KUBECONFIG: string | undefined, named?: string) => fleetKubeconfigs(named, { KUBECONFIG }, folder)

  it('are those of KUBECONFIG without the hub’s own, whether that was written yet or not', async () => {
    expect(await chosen(`${own}:/fleet.yaml`)).toEqual({ paths: ['/fleet.yaml'], isNamed: true, own: [own] })
    await writeFile(own, '')
    await symlink(own, join(folder, 'link'))
    expect(await chosen(`${join(folder, 'link')}:/fleet.yaml`)).toMatchObject({ paths: ['/fleet.yaml'] })
    expect(await chosen('/fleet.yaml')).toEqual({ paths: ['/fleet.yaml'], isNamed: true, own: [] })
  })

  it('are as in a shell without KUBECONFIG where that names the hub’s own alone', async () => {
    const usual = kubeconfigPaths(undefined, {})
    expect(usual.every((path) => path.startsWith(homedir()))).toBe(true)
    expect(await chosen(own)).toEqual({ paths: usual, isNamed: false, own: [own] })
    expect(await chosen(undefined)).toEqual({ paths: usual, isNamed: false, own: [] })
  })

  it('are not the hub’s own where that is asked for: it says what to name instead', async () => {
    await expect(chosen(undefined, own)).rejects.toThrow(/kubeconfig leads to this hub itself.*of your clusters/)
    expect((await chosen(own, '/fleet.yaml')).paths).toEqual(['/fleet.yaml'])
  })
})

describe('a context that leads to the hub itself', () => {
  const member = (name: string, ca?: string): Member => ({
    ...{ name, displayName: name, endpoint: 'https://127.0.0.1:6443', labels: {}, credentials: {} },
    ...{ insecureSkipTlsVerify: false, ...(ca !== undefined && { ca }) },
  })
  const of = (...members: readonly Member[]) => ({ paths: ['/config'], members, leftOut: [] })
  const hub = { ca: 'own\n', chosen: [] as readonly string[] }

  it('is no cluster, and is named; the others beside it are', () => {
    const { given, own } = withoutHub(of(member('clusterpulse', 'own'), member('east', 'other'), member('west')), hub)
    expect(given?.members.map(({ name }) => name)).toEqual(['east', 'west'])
    expect(ownHubWords(own)).toMatch(
      /^Not shown as a cluster: the context clusterpulse of \/config, which leads to this hub/,
    )
    expect(withoutHub(of(member('east', 'other')), hub)).toEqual({ given: of(member('east', 'other')), own: [] })
  })

  it('leaves nothing where it is alone, so that the hub shows what it shows without a kubeconfig', () => {
    expect(withoutHub(of(member('clusterpulse', 'own\n')), hub).given).toBeUndefined()
  })

  it('is refused where it is asked for by name', () => {
    const asked = { ...hub, chosen: ['clusterpulse'] }
    expect(() => withoutHub(of(member('clusterpulse', 'own')), asked)).toThrow(/context clusterpulse leads to this hub/)
  })
})
