import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'

/** An open file that is only written. */
export interface DiskFile {
  /** Writes all bytes at this place of the file, or throws. */
  write(bytes: Uint8Array, position: number): Promise<void>
  /** Returns when what was written survives a loss of power. */
  sync(): Promise<void>
  truncate(sizeBytes: number): Promise<void>
  close(): Promise<void>
}

/** The few things the log asks of a disk, so that a test can let a disk run full or fail. */
export interface Disk {
  makeDirectory(path: string): Promise<void>
  list(path: string): Promise<string[]>
  /** Opens for writing; the file is made where it is missing. */
  open(path: string): Promise<DiskFile>
  /** The whole file, or its first bytes. */
  read(path: string, maxBytes?: number): Promise<Buffer>
  sizeBytes(path: string): Promise<number>
  rename(from: string, to: string): Promise<void>
  remove(path: string): Promise<void>
  /** Makes created, renamed and removed names of the directory survive a loss of power. */
  syncDirectory(path: string): Promise<void>
}

export const nodeDisk: Disk = {
  makeDirectory: async (path) => {
    await mkdir(path, { recursive: true })
  },
  list: (path) => readdir(path),
  read: async (path, maxBytes) => {
    if (maxBytes === undefined) return readFile(path)
    const file = await open(path, 'r')
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(maxBytes), 0, maxBytes, 0)
      return buffer.subarray(0, bytesRead)
    } finally {
      await file.close()
    }
  },
  sizeBytes: async (path) => (await stat(path)).size,
  rename,
  remove: (path) => rm(path, { force: true }),
  open: async (path) => {
    // r+ would fail on a missing file, w would cut an existing one; a+ ignores the position.
    const file = await open(path, 'r+').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return open(path, 'wx+')
      throw error
    })
    return {
      write: async (bytes, position) => {
        for (let done = 0; done < bytes.length; ) {
          done += (await file.write(bytes, done, bytes.length - done, position + done)).bytesWritten
        }
      },
      sync: () => file.datasync(),
      truncate: (sizeBytes) => file.truncate(sizeBytes),
      close: () => file.close(),
    }
  },
  syncDirectory: async (path) => {
    const directory = await open(path, 'r')
    try {
      await directory.sync()
    } finally {
      await directory.close()
    }
  },
}

/** Replaces the file as a whole: after a crash there is the old text or the new one, never half. */
export async function writeAtomically(disk: Disk, directory: string, name: string, text: string): Promise<void> {
  const temporary = `${directory}/${name}.new`
  const bytes = Buffer.from(text)
  const file = await disk.open(temporary)
  try {
    await file.truncate(0)
    await file.write(bytes, 0)
    await file.sync()
  } finally {
    await file.close()
  }
  await disk.rename(temporary, `${directory}/${name}`)
  await disk.syncDirectory(directory)
}
