/* settings.h - every setting of a training run, once. SPDX-License-Identifier: MIT
 *
 * This list makes the rows of recipe.c, the options of the command, the keys of YAML files and of
 * run.json: _(key, option, kind, default, least, most, choices, what stands for the value in
 * --help, help, role). The key is also the name of the field in train_settings. Default "auto" is
 * for a real that recipe_resolve() derives. The role states how a setting affects the results of a
 * run (setting_role in recipe.h); a new one that changes results is LATER. */
#ifndef TRAIN_SETTINGS_H
#define TRAIN_SETTINGS_H

#include "data/augment.h"
#include "models/models.h"

/* clang-format off */
#define TRAIN_SETTINGS(_) \
    /* what is trained */ \
    _(model, "model", TEXT, "", 0, 0, NULL, "NAME", "the network, for example vit_micro or vit_tiny_cifar", FIXED) \
    _(data, "data", TEXT, "", 0, 0, NULL, "DATA", "synthetic, a folder or archive, or KIND:PATH", PLACE) \
    _(act, "act", LIST, "", 0, 0, NULL, "ACT", "activation NAME[:key=value,...]; once, or once per site", FIXED) \
    _(run, "run", TEXT, "", 0, 0, NULL, "DIR", "where the run is kept", FREE) \
    _(recipe, "recipe", CHOICE, "paper", 0, 0, recipe_names, "paper|deit|convnext|plain", "preset for everything not given", NAME) \
    _(image_size, "image-size", COUNT, "0", 0, 4096, NULL, "N", "side of the input; 0: the model's own", FIXED) \
    _(patch, "patch", COUNT, "0", 0, 4096, NULL, "N", "patch size; 0: the model's own", FIXED) \
    _(stride, "stride", COUNT, "0", 0, 4096, NULL, "N", "stride of TNT's pixel embedding; 0: the model's own", FIXED) \
    _(stem, "stem", COUNT, "0", 0, 4, NULL, "1|2|4", "stem of ConvNeXt; 0: the model's own", FIXED) \
    _(classes, "classes", COUNT, "0", 0, 1000000, NULL, "N", "0: as many as the data has", FIXED) \
    _(drop_path, "drop-path", REAL, "0", 0, MODEL_DROP_PATH_MOST, NULL, "P", "stochastic depth of the last block", FIXED) \
    _(init_std, "init-std", REAL, "0", 0, 10, NULL, "S", "deviation of initial weights; 0: the model's own", FIXED) \
    _(init_std_fc1, "init-std-fc1", REAL, "0", 0, 10, NULL, "S", "the same for fc1 alone, in front of the activation", FIXED) \
    _(act_params, "act-params", CHOICE, "layer", 0, 0, layer_or_channel, "layer|channel", "learned parameters per layer or per channel", FIXED) \
    _(init, "init", TEXT, "", 0, 0, NULL, "FILE|RUN", "begin with these weights (safetensors, ours or timm's) instead of drawn ones; another number of classes gives a new head", PLACE) \
    _(init_sha256, "init-sha256", TEXT, "", 0, 0, NULL, "HEX", "SHA-256 that the file of --init must have; run.json records it", LATER) \
    /* optimizer */ \
    _(optimizer, "optimizer", CHOICE, "adamw", 0, 0, optimizers, "adamw|sgd", "update rule", FIXED) \
    _(lr, "lr", REAL, "auto", 0, 1e38, NULL, "LR", "peak learning rate; auto: 1e-3 * images per update / 1024 (recipe convnext: 4e-3 whatever the batch)", FIXED) \
    _(weight_decay, "weight-decay", REAL, "0.05", 0, 1e6, NULL, "D", "on matrices only, unless --decay-all", FIXED) \
    _(beta1, "beta1", REAL, "0.9", 0, 0.999999, NULL, "B", "AdamW", FIXED) \
    _(beta2, "beta2", REAL, "0.999", 0, 0.999999999, NULL, "B", "AdamW", FIXED) \
    _(adam_eps, "adam-eps", REAL, "1e-8", 0, 1, NULL, "E", "AdamW", FIXED) \
    _(momentum, "momentum", REAL, "0.9", 0, 0.999999, NULL, "M", "SGD", FIXED) \
    _(nesterov, "nesterov", FLAG, "0", 0, 1, NULL, NULL, "SGD", FIXED) \
    _(clip, "clip", REAL, "1", 0, 1e30, NULL, "C", "largest norm of all gradients; 0: no limit", FIXED) \
    _(decay_all, "decay-all", FLAG, "0", 0, 1, NULL, NULL, "decay every parameter, norms and alpha too", FIXED) \
    _(act_lr, "act-lr", REAL, "1", 0, 1e6, NULL, "X", "learning rate of activation parameters, as a multiple", FIXED) \
    _(act_decay, "act-decay", REAL, "0", 0, 1e6, NULL, "D", "weight decay of activation parameters", FIXED) \
    _(act_freeze, "act-freeze", FLAG, "0", 0, 1, NULL, NULL, "activation parameters do not learn", FIXED) \
    _(act_constraint, "act-constraint", TEXT, "none", 0, 0, NULL, "RULE", "none, or alpha:LOW:HIGH and eps:LOW:HIGH, joined by commas", FIXED) \
    /* schedule */ \
    _(schedule, "schedule", CHOICE, "cosine-step", 0, 0, schedule_names, "NAME", "cosine-step, timm-epoch, timm-update, convnext, deit, linear, step, constant", FIXED) \
    _(epochs, "epochs", COUNT, "100", 1, 1e9, NULL, "N", "passes over the data", FIXED) \
    _(warmup, "warmup", REAL, "5", 0, 1e9, NULL, "EPOCHS", "linear warm-up", FIXED) \
    _(warmup_lr, "warmup-lr", REAL, "1e-6", 0, 1e6, NULL, "LR", "where the warm-up starts", FIXED) \
    _(min_lr, "min-lr", REAL, "1e-5", 0, 1e6, NULL, "LR", "where the schedule ends", FIXED) \
    _(step_every, "step-every", REAL, "30", 0, 1e9, NULL, "EPOCHS", "schedule step", FIXED) \
    _(step_factor, "step-factor", REAL, "0.1", 0, 1e6, NULL, "F", "schedule step", FIXED) \
    /* batches and images */ \
    _(batch, "batch", COUNT, "1024", 1, 1e7, NULL, "N", "images per pass", FIXED) \
    _(accumulate, "accumulate", COUNT, "1", 1, 1e6, NULL, "N", "passes per update", FIXED) \
    _(eval_batch, "eval-batch", COUNT, "100", 1, 1e7, NULL, "N", "images per pass of an evaluation; on cuda 1024", FIXED) \
    _(augment, "augment", CHOICE, "none", 0, 0, augment_names, "none|crop-flip|deit|convnext", "what is done to training images", FIXED) \
    _(jitter, "jitter", REAL, "0", 0, 100, NULL, "X", "colour jitter: brightness, contrast and saturation by up to this share", FIXED) \
    _(hue, "hue", REAL, "0", 0, 0.5, NULL, "X", "colour jitter: hue by up to this share of the circle", FIXED) \
    _(interpolation, "interpolation", CHOICE, "bicubic", 0, 0, interpolations, "bicubic|bilinear|random", "of resizing and turning; random: by coin in training, bicubic in evaluation", FIXED) \
    _(eval_crop, "eval-crop", CHOICE, "auto", 0, 0, eval_crops, "auto|center|squash", "evaluation: the middle, or all of the image made square; auto: the middle, except for recipe convnext at 384 and above", FIXED) \
    _(crop_pct, "crop-pct", REAL, "0", 0, 1, NULL, "P", "evaluation: share of the short edge that the middle takes, from 0.05; 0: 0.875, and 1 at 32 or for sets of small squares", FIXED) \
    _(repeats, "repeats", COUNT, "1", 1, 64, NULL, "N", "repeated augmentation", FIXED) \
    _(mixup, "mixup", REAL, "0", 0, 1000, NULL, "A", "alpha of mixup; 0: off", FIXED) \
    _(cutmix, "cutmix", REAL, "0", 0, 1000, NULL, "A", "alpha of cutmix; 0: off", FIXED) \
    _(mix_prob, "mix-prob", REAL, "1", 0, 1, NULL, "P", "how often a batch is mixed", FIXED) \
    _(mix_switch, "mix-switch", REAL, "0.5", 0, 1, NULL, "P", "share of cutmix where both are on", FIXED) \
    _(mix_group, "mix-group", COUNT, "0", 0, 1e7, NULL, "N", "images that share a draw; 0: 256 where it divides the batch", FIXED) \
    _(smoothing, "smoothing", REAL, "0", 0, 0.999, NULL, "S", "label smoothing", FIXED) \
    _(normalize, "normalize", CHOICE, "own", 0, 0, normalizations, "own|imagenet|customary", "by the set's own mean and deviation (published, or measured once), by ImageNet's, or by the published ones and else ImageNet's", NAME) \
    _(mean, "mean", TEXT, "", 0, 0, NULL, "R,G,B", "mean of the pixels in [0, 1], instead of normalize", FIXED) \
    _(std, "std", TEXT, "", 0, 0, NULL, "R,G,B", "their deviation, together with mean", FIXED) \
    _(holdout, "holdout", COUNT, "0", 0, 1e15, NULL, "N", "training images kept for evaluation instead of the test split", FIXED) \
    _(train_images, "train-images", COUNT, "0", 0, 1e15, NULL, "N", "a fixed part of the training images, as many of each class; 0: all", FIXED) \
    _(test_images, "test-images", COUNT, "0", 0, 1e15, NULL, "N", "the same of the images that are evaluated", FIXED) \
    _(class_order, "class-order", CHOICE, "torchvision", 0, 0, class_orders, "torchvision|timm", "how the classes of a folder are numbered", FIXED) \
    _(val_labels, "val-labels", TEXT, "", 0, 0, NULL, "FILE", "lines \"FILENAME CLASS\" for a flat val folder", PLACE) \
    _(labels, "labels", CHOICE, "fine", 0, 0, label_kinds, "fine|coarse", "of CIFAR-100", FIXED) \
    _(max_bad, "max-bad", COUNT, "-1", -1, 1e15, NULL, "N", "broken files that are skipped; -1: one in a thousand", FREE) \
    _(workers, "workers", COUNT, "0", 0, 1024, NULL, "N", "threads that prepare images; 0: as many as cores", FREE) \
    _(synthetic_images, "synthetic-images", COUNT, "10000", 1, 1e15, NULL, "N", "training images of data synthetic", FIXED) \
    /* what else acts on the loss and the weights */ \
    _(teacher, "teacher", TEXT, "", 0, 0, NULL, "RUN|MODEL:FILE", "whom a distilled model learns from", PLACE) \
    _(teacher_act, "teacher-act", TEXT, "", 0, 0, NULL, "ACT", "activation of a teacher MODEL:FILE whose file does not say it", FIXED) \
    _(distill, "distill", CHOICE, "none", 0, 0, distillations, "none|hard|soft", "none, hard labels or soft ones", FIXED) \
    _(distill_alpha, "distill-alpha", REAL, "0.5", 0, 1, NULL, "A", "share of the teacher in the loss", FIXED) \
    _(distill_tau, "distill-tau", REAL, "1", 1e-6, 1e6, NULL, "T", "temperature of soft labels", FIXED) \
    _(ema, "ema", REAL, "0", 0, 0.99999999, NULL, "D", "decay of the averaged weights; 0: none are kept", FIXED) \
    /* the run itself */ \
    _(seed, "seed", COUNT, "0", 0, 9e15, NULL, "N", "of weights, order, augmentation, drop path", FIXED) \
    _(max_steps, "max-steps", COUNT, "0", 0, 4294967295, NULL, "N", "stop after so many updates; the schedule stays", LENGTH) \
    _(eval_every, "eval-every", COUNT, "1", 1, 1e9, NULL, "EPOCHS", "evaluate every so many epochs, and after the last one", FIXED) \
    _(checkpoint_every, "checkpoint-every", COUNT, "0", 0, 1e15, NULL, "STEPS", "besides one per epoch", FREE) \
    _(keep, "keep", CHOICE, "input", 0, 0, keeps, "input|both|output", "what an activation keeps for the backward pass", FIXED) \
    _(recompute_attention, "recompute-attention", FLAG, "0", 0, 1, NULL, NULL, "the backward pass recomputes the output of attention: less memory, more time", LATER) \
    _(device, "device", CHOICE, "cpu", 0, 0, devices, "cpu|cuda", "where the network runs", FIXED) \
    _(precision, "precision", CHOICE, "bf16", 0, 0, precision_names, "bf16|tf32|f32", "of products on cuda; the CPU computes in f32", LATER) \
    _(residual, "residual", CHOICE, "bf16", 0, 0, residual_names, "bf16|f32", "dtype of the residual stream with precision bf16", LATER) \
    _(algorithms, "algorithms", TEXT, "", 0, 0, NULL, "FILE", "cuda: file of product algorithms, or first, or new", FREE) \
    _(data_on, "data-on", CHOICE, "auto", 0, 0, data_places, "auto|host|device", "where images lie; auto: on the GPU as bytes where the set fits and nothing resizes or recolours it", FREE) \
    _(threads, "threads", COUNT, "0", 0, 4096, NULL, "N", "0: as many as cores", FREE) \
    _(overfit_batch, "overfit-batch", FLAG, "0", 0, 1, NULL, NULL, "train on the first batch alone, as a check", FIXED)
/* clang-format on */

#endif
