import { chmodSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { keepPrivate } from './private-files.ts'

it('takes the rights of others from what is in a folder, and from what is made there later', async () => {
  const umask = process.umask()
  const folder = mkdtempSync(join(tmpdir(), 'private-'))
  onTestFinished(() => {
    process.umask(umask)
    rmSync(folder, { recursive: true, force: true })
  })
  chmodSync(folder, 0o755)
  mkdirSync(join(folder, 'log'), { mode: 0o755 })
  writeFileSync(join(folder, 'log', 'old.segment'), 'x', { mode: 0o644 })
  await keepPrivate(folder)
  writeFileSync(join(folder, 'new'), 'x')
  const modeOf = (name: string) => statSync(join(folder, name)).mode & 0o777
  expect([modeOf('log'), modeOf('log/old.segment'), modeOf('new')]).toEqual([0o700, 0o600, 0o600])
})
