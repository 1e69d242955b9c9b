import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { ChainHead } from './chain.ts'

/** Files of one trail, oldest first: `<path>.<first sequence>`, then the one being written. */
export async function filesOf(path: string): Promise<string[]> {
  const name = basename(path)
  const names = await readdir(dirname(path)).catch((): string[] => [])
  const older = names.filter((one) => one.startsWith(`${name}.`) && /^\d{12}$/.test(one.slice(name.length + 1))).sort()
  return [...older.map((one) => join(dirname(path), one)), ...(names.includes(name) ? [join(dirname(path), name)] : [])]
}

export const rotatedName = (path: string, first: number): string => `${path}.${String(first).padStart(12, '0')}`

export const firstIn = (text: string): number | undefined => {
  const match = /^\{"seq":(\d{1,15}),/.exec(text.slice(0, 40))
  return match ? Number(match[1]) : undefined
}

/** Sequence and hash of a line, or of a head. */
export function headIn(text: string): ChainHead | undefined {
  try {
    const { seq, hash } = JSON.parse(text) as Partial<ChainHead>
    return typeof seq === 'number' && typeof hash === 'string' ? { seq, hash } : undefined
  } catch {
    return undefined
  }
}

/** @returns '' where the file is not there */
export async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
