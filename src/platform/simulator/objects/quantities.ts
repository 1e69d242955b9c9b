const CPU_STEPS = [10, 25, 50, 100, 150, 200, 250, 300, 400, 500, 750, 1000, 1500, 2000, 3000, 4000, 8000, 16000]
const MEMORY_STEPS = [16, 32, 50, 64, 100, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 4096, 8192, 16384, 32768]

const nearest = (steps: readonly number[], amount: number): number =>
  steps.reduce((best, step) => (Math.abs(step - amount) < Math.abs(best - amount) ? step : best))

/** An amount of cores as people write it: `250m`, `2`. */
export function cpuRequest(cores: number): { readonly text: string; readonly cores: number } {
  const milli = nearest(CPU_STEPS, cores * 1000)
  return { text: milli % 1000 === 0 ? String(milli / 1000) : `${milli}m`, cores: milli / 1000 }
}

/** An amount of memory as people write it: `128Mi`, `4Gi`. */
export function memoryRequest(bytes: number): { readonly text: string; readonly bytes: number } {
  const mebi = nearest(MEMORY_STEPS, bytes / 2 ** 20)
  return { text: mebi % 1024 === 0 ? `${mebi / 1024}Gi` : `${mebi}Mi`, bytes: mebi * 2 ** 20 }
}
