/* Plugins that export names alone: enough for whoever reads the file, too little for a call. */
#ifdef OLD
const void *ncclNetPlugin_v4[17] = {"Old"}, *ncclNetPlugin_v5[17] = {"Old"};
#endif
#ifdef NEW
const void *ncclNetPlugin_v40[30] = {"New"};
#endif
#ifdef TUNER
const void *ncclTunerPlugin_v3[4] = {"Tuner"};
#endif
int shk_fake_filler(void);
int shk_fake_filler(void)
{
    return 1;
}
