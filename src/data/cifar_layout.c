/* cifar_layout.c - the two published CIFAR sets: files, sizes, names of classes, hashes, pixel
 * statistics. SPDX-License-Identifier: MIT
 *
 * Source: https://www.cs.toronto.edu/~kriz/cifar.html; classes are in the order of the label
 * numbers. The normalisation is mean and standard deviation over all training pixels (a test
 * compares it with the files where they are at hand). */
#include "data/cifar_layout.h"

static const char *const names10[] = {
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
};
static const char *const names100[] = {
    "apple",      "aquarium_fish", "baby",         "bear",       "beaver",      "bed",         "bee",
    "beetle",     "bicycle",       "bottle",       "bowl",       "boy",         "bridge",      "bus",
    "butterfly",  "camel",         "can",          "castle",     "caterpillar", "cattle",      "chair",
    "chimpanzee", "clock",         "cloud",        "cockroach",  "couch",       "crab",        "crocodile",
    "cup",        "dinosaur",      "dolphin",      "elephant",   "flatfish",    "forest",      "fox",
    "girl",       "hamster",       "house",        "kangaroo",   "keyboard",    "lamp",        "lawn_mower",
    "leopard",    "lion",          "lizard",       "lobster",    "man",         "maple_tree",  "motorcycle",
    "mountain",   "mouse",         "mushroom",     "oak_tree",   "orange",      "orchid",      "otter",
    "palm_tree",  "pear",          "pickup_truck", "pine_tree",  "plain",       "plate",       "poppy",
    "porcupine",  "possum",        "rabbit",       "raccoon",    "ray",         "road",        "rocket",
    "rose",       "sea",           "seal",         "shark",      "shrew",       "skunk",       "skyscraper",
    "snail",      "snake",         "spider",       "squirrel",   "streetcar",   "sunflower",   "sweet_pepper",
    "table",      "tank",          "telephone",    "television", "tiger",       "tractor",     "train",
    "trout",      "tulip",         "turtle",       "wardrobe",   "whale",       "willow_tree", "wolf",
    "woman",      "worm"};
static const char *const coarse_names[] = {"aquatic_mammals",
                                           "fish",
                                           "flowers",
                                           "food_containers",
                                           "fruit_and_vegetables",
                                           "household_electrical_devices",
                                           "household_furniture",
                                           "insects",
                                           "large_carnivores",
                                           "large_man-made_outdoor_things",
                                           "large_natural_outdoor_scenes",
                                           "large_omnivores_and_herbivores",
                                           "medium_mammals",
                                           "non-insect_invertebrates",
                                           "people",
                                           "reptiles",
                                           "small_mammals",
                                           "trees",
                                           "vehicles_1",
                                           "vehicles_2"};
static const unsigned char coarse_of[] = {
    4,  1,  14, 8,  0,  6,  7,  7, 18, 3,  3,  14, 9, 18, 7,  11, 3,  9, 7,  11, 6,  11, 5,  10, 7,
    6,  13, 15, 3,  15, 0,  11, 1, 10, 12, 14, 16, 9, 11, 5,  5,  19, 8, 8,  15, 13, 14, 17, 18, 10,
    16, 4,  17, 4,  2,  0,  17, 4, 18, 17, 10, 3,  2, 12, 12, 16, 12, 1, 9,  19, 2,  10, 0,  1,  16,
    12, 9,  13, 15, 13, 16, 19, 2, 4,  6,  19, 5,  5, 8,  19, 18, 1,  2, 15, 6,  0,  17, 8,  14, 13};

const cifar_layout cifar10_layout = {
    .kind = "cifar10",
    .folder = "cifar-10-batches-bin",
    .files = 6,
    .file_names = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin",
                   "test_batch.bin"},
    .records = {10000, 10000, 10000, 10000, 10000, 10000},
    .label_bytes = 1,
    .classes = 10,
    .names = names10,
    .mean = {0.4914, 0.4822, 0.4465},
    .std = {0.2470, 0.2435, 0.2616},
    .archive = "cifar-10-binary.tar.gz",
    .url = "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    .sha256 = "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    .archive_bytes = 170052171,
    .python_file = "data_batch_1",
    .python_meta = "batches.meta",
};

const cifar_layout cifar100_layout = {
    .kind = "cifar100",
    .folder = "cifar-100-binary",
    .files = 2,
    .file_names = {"train.bin", "test.bin"},
    .records = {50000, 10000},
    .label_bytes = 2,
    .classes = 100,
    .coarse_classes = 20,
    .names = names100,
    .coarse_names = coarse_names,
    .coarse_of = coarse_of,
    .mean = {0.5071, 0.4865, 0.4409},
    .std = {0.2673, 0.2564, 0.2762},
    .archive = "cifar-100-binary.tar.gz",
    .url = "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    .sha256 = "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
    .archive_bytes = 168513733,
    .python_file = "train",
    .python_meta = "meta",
};
