import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { generateServingCertificate } from './tls.ts'

it('replaces a CA that is harmed, and never one that it only may not read', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'serving-'))
  onTestFinished(() => rmSync(dir, { recursive: true }))
  const made = () => generateServingCertificate({ hosts: ['127.0.0.1'], dir })
  const { ca } = await made()
  const key = join(dir, 'ca.key')
  // As a file of another user is: the system refuses to say what it holds.
  renameSync(key, `${key}.kept`)
  mkdirSync(key)
  await expect(made()).rejects.toMatchObject({ code: 'EISDIR' })
  expect(readdirSync(dir).filter((name) => name.endsWith('.damaged'))).toEqual([])
  rmdirSync(key)
  renameSync(`${key}.kept`, key)
  expect((await made()).ca).toBe(ca)
  writeFileSync(key, 'harmed')
  expect((await made()).ca).not.toBe(ca)
  expect(readdirSync(dir).sort()).toEqual(['ca.crt', 'ca.crt.damaged', 'ca.key', 'ca.key.damaged'])
})
