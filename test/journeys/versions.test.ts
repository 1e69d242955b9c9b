import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { clusterpulse, nobodysKubeconfig } from '../process.ts'

it('a hub says which build it is, upgrades a folder aloud, and refuses one of a later version', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'versions-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const dataDir = join(folder, 'hub')
  mkdirSync(dataDir)
  const version = clusterpulse(['--version'])
  const [build] = await version.says(/^\d+\.\d+\.\d+\+\S+$/m)

  const members = ['--kubeconfig', await nobodysKubeconfig(folder)]
  const start = () =>
    clusterpulse(['up', ...members, '--data-dir', dataDir, '--port', '0', '--control-plane-port', '0'])
  writeFileSync(join(dataDir, 'of-an-earlier-version'), '')
  await using hub = start()
  const [, url] = await hub.says(/on (http:\S+)/)
  const upgraded = /is upgraded from format 0 \(a version that kept no number\) to \d+ \(([^)]+)\)/.exec(hub.stderr())
  expect(upgraded?.[1]).toBe(build)
  expect(await (await fetch(`${url}/readyz`)).json()).toMatchObject({ status: 'ready', version: build })
  expect(await (await fetch(`${url}/metrics`)).text()).toMatch(
    new RegExp(`clusterpulse_build_info\\{version="${build.replaceAll('+', '\\+')}",role="up"\\} 1`),
  )
  const kubectl = spawnSync('kubectl', ['--kubeconfig', join(dataDir, 'kubeconfig'), 'version'], { encoding: 'utf8' })
  if (!kubectl.error) expect(kubectl.stdout).toContain(`+clusterpulse-${build.replace('+', '.')}`)
  await hub.kill('SIGTERM')

  const format = join(dataDir, 'format')
  const kept = readFileSync(format, 'utf8')
  expect(kept).toContain(build)
  // Both copies, as a later version would have written them; the sum is that of this text.
  const later = '{"format":9,"readableFrom":9,"program":"9.0.0+c0ffee"}\nf9c2fc9d\n'
  for (const path of [format, `${format}.copy`]) writeFileSync(path, later)
  await using refused = start()
  expect(await refused.ended()).toBe(1)
  expect(refused.stderr()).toContain(`is in format 9, written by 9.0.0+c0ffee; this is ${build}`)
  expect(readFileSync(format, 'utf8')).toBe(later)
})
