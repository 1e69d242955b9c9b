import { openRemnant } from '#apiserver'
import { createSealer, keptKeys } from '#sealing'
import type { UpConfig } from './config.ts'
import { keyFile } from './control-plane.ts'

/**
 * A file of the folder's objects that was put aside and sealed, as it was.
 * @throws UnknownKeyError, SealBrokenError
 */
export async function unsealed(file: string, { dataDir, controlPlane }: UpConfig): Promise<Buffer> {
  const keys = await keptKeys({ path: keyFile(dataDir), given: controlPlane.encryptionKeys })
  return openRemnant(file, createSealer(keys))
}
